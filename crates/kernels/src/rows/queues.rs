//! Kernels of queues.
//!
//! No kernel waits: a call that can't be done yet takes its place in the queue, and its results come later. Later calls
//! on the queue begin as soon as it has its place.

use std::sync::Arc;

use smallvec::smallvec;
use tfrt_host::{AsyncValue, Chain, DType, Error, ExecutionContext, Promise};
use tfrt_tensor::op::{Output, Outputs, TensorCall, TensorKernel};
use tfrt_tensor::resource::queue::{Element, FifoQueue, QueueKind, Taken, Wanted};
use tfrt_tensor::resource::{Resources, Slot};
use tfrt_tensor::{Bool, DenseHostTensor, PartialTensorShape, Tensor, TensorShape};

use super::lists::{joined, kernel, length, number, parts_of};

pub(super) const KERNELS: &[TensorKernel] = &[
    kernel("tf.FIFOQueueV2", new),
    kernel("tf.QueueCloseV2", |call| {
        let refuses_waiting = call.attrs.flag("cancel_pending_enqueues");
        let closed = queue(call)?.get::<FifoQueue>()?.close(refuses_waiting)?;
        done(call, closed)
    }),
    kernel("tf.QueueDequeueManyV2", |call| {
        take_many(call, "DequeueManyOp", false)
    }),
    kernel("tf.QueueDequeueUpToV2", |call| {
        take_many(call, "DequeueUpToOp", true)
    }),
    kernel("tf.QueueDequeueV2", |call| {
        let wanted = Wanted {
            n: 1,
            or_fewer: false,
        };
        take(call, wanted, None)
    }),
    kernel("tf.QueueEnqueueManyV2", |call| {
        let elements = slices(call)?;
        put(call, elements)
    }),
    kernel("tf.QueueEnqueueV2", |call| {
        let tensors = (1..call.n_inputs()).map(|index| call.tensor(index).cloned());
        let element = tensors.collect::<Result<_, Error>>()?;
        put(call, vec![element])
    }),
    kernel("tf.QueueIsClosedV2", |call| {
        let is_closed = queue(call)?.get::<FifoQueue>()?.is_closed()?;
        let allocator = call.execution.host().allocator();
        let found = DenseHostTensor::scalar(allocator, Bool::from(is_closed))?;
        Ok(smallvec![found.into()])
    }),
    kernel("tf.QueueSizeV2", |call| {
        let n = queue(call)?.get::<FifoQueue>()?.n_elements()?;
        let n =
            i32::try_from(n).map_err(|_| call.error(format_args!("{n} tuples are too many")))?;
        let allocator = call.execution.host().allocator();
        Ok(smallvec![DenseHostTensor::scalar(allocator, n)?.into()])
    }),
];

fn queue(call: &TensorCall<'_>) -> Result<Arc<Slot>, Error> {
    let slot = Slot::counted(call.tensor(0)?)?;
    slot.get::<FifoQueue>()?;
    Ok(slot)
}

fn new(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let shapes = call.attrs.shapes("shapes").unwrap_or_default();
    let shapes = shapes.iter().map(|extents| {
        let shape = call.named(PartialTensorShape::from_i64(extents))?;
        let whole = shape.to_shape();
        whole.map_err(|_| Error::invalid_argument(format!("Shape {shape} is not fully defined")))
    });
    let kind = QueueKind {
        types: call.attrs.dtypes("component_types").unwrap_or_default(),
        shapes: shapes.collect::<Result<_, Error>>()?,
        capacity: call
            .attrs
            .int("capacity")
            .and_then(|n| usize::try_from(n).ok()),
    };
    let (container, name) = (call.attrs.text("container"), call.attrs.text("shared_name"));
    let slot = match name {
        "" => Slot::anonymous(FifoQueue::new("anonymous", kind.clone())?),
        name => {
            let made = FifoQueue::new(name, kind.clone())?;
            Resources::of(call.execution.host()).slot(container, name, || made)
        }
    };
    let found = slot.get::<FifoQueue>()?;
    expect_same(name, found.kind(), &kind)?;
    found.renew();
    Ok(smallvec![slot.handle().into()])
}

/// Checks that the queue of a name is as the call says.
fn expect_same(name: &str, found: &QueueKind, stated: &QueueKind) -> Result<(), Error> {
    let capacity = |kind: &QueueKind| match kind.capacity {
        Some(n) => n.to_string(),
        None => i32::MAX.to_string(),
    };
    let (found, stated, what) = if found.capacity != stated.capacity {
        let (found, stated) = (capacity(found), capacity(stated));
        return Err(Error::invalid_argument(format!(
            "Shared queue '{name}' has capacity {found} but requested capacity was {stated}"
        )));
    } else if found.types != stated.types {
        (found.types_text(), stated.types_text(), "types")
    } else if found.shapes != stated.shapes {
        (found.shapes_text(), stated.shapes_text(), "shapes")
    } else {
        return Ok(());
    };
    Err(Error::invalid_argument(format!(
        "Shared queue '{name}' has component {what} {found} but requested component {what} were {stated}"
    )))
}

fn expect_no_timeout(call: &TensorCall<'_>) -> Result<(), Error> {
    match call.attrs.int("timeout_ms") {
        None | Some(-1) => Ok(()),
        Some(_) => Err(Error::invalid_argument("Timeout not supported yet.")),
    }
}

fn put(call: &mut TensorCall<'_>, elements: Vec<Element>) -> Result<Outputs, Error> {
    expect_no_timeout(call)?;
    let slot = queue(call)?;
    let queue = slot.get::<FifoQueue>()?;
    let put = queue.put(elements, &slot, call.execution.request())?;
    done(call, put)
}

/// Returns from a call without results, which is done when the chain resolves.
fn done(call: &mut TensorCall<'_>, chain: AsyncValue<Chain>) -> Result<Outputs, Error> {
    match chain.get() {
        Some(Ok(_)) => (),
        Some(Err(error)) => return Err(error.clone()),
        None => call.waiting = Some(chain),
    }
    Ok(Outputs::new())
}

/// Returns the tuples of slices of the operands along their first dimension.
fn slices(call: &TensorCall<'_>) -> Result<Vec<Element>, Error> {
    let slot = queue(call)?;
    let kind = slot.get::<FifoQueue>()?.kind();
    let n_components = call.n_inputs().saturating_sub(1);
    let (mut types, mut n) = (Vec::with_capacity(n_components), None);
    for index in 0..n_components {
        let metadata = call.tensor(index + 1)?.metadata();
        types.push(metadata.dtype);
        let found = metadata.shape.extents().next();
        if let Some(n) = n
            && found != n
            && kind.shapes.is_empty()
        {
            let text = |n: Option<usize>| n.map_or("none".to_owned(), |n| n.to_string());
            let (found, n) = (text(found), text(n));
            return Err(Error::invalid_argument(format!(
                "All input tensors must have the same size in the 0th dimension. Component {index} has {found}, and \
                 should have {n}"
            )));
        }
        n.get_or_insert(found);
    }
    kind.check_types(types.into_iter())?;
    let n = n.flatten().unwrap_or(0);
    for (index, shape) in kind.shapes.iter().enumerate() {
        let own = &call.tensor(index + 1)?.metadata().shape;
        let whole: Vec<usize> = std::iter::once(n).chain(shape.extents()).collect();
        if own.extents().ne(whole.iter().copied()) {
            let (whole, own) = (TensorShape::new(&whole)?, own);
            return Err(Error::invalid_argument(format!(
                "Shape mismatch in tuple component {index}. Expected {}, got {}",
                super::variables::extents(&whole),
                super::variables::extents(own)
            )));
        }
    }
    let mut elements = vec![Element::new(); n];
    for index in 0..n_components {
        let list = parts_of(call, index + 1, PartialTensorShape::UNRANKED, None)?;
        for (element, tensor) in elements.iter_mut().zip(list.elements) {
            element.extend(tensor);
        }
    }
    Ok(elements)
}

fn take_many(call: &mut TensorCall<'_>, op: &str, or_fewer: bool) -> Result<Outputs, Error> {
    let n = number(call, 1)?;
    if n < 0 {
        return Err(Error::invalid_argument(format!(
            "{op} requested {n} < 0 elements"
        )));
    }
    let wanted = Wanted {
        n: length(call, n)?,
        or_fewer,
    };
    let slot = queue(call)?;
    let shapes = &slot.get::<FifoQueue>()?.kind().shapes;
    if shapes.is_empty() {
        return Err(Error::invalid_argument(
            "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.",
        ));
    }
    take(call, wanted, Some(shapes.clone()))
}

/// Takes tuples out; stacks them to tensors of these shapes behind the first extent, if there are some.
fn take(
    call: &mut TensorCall<'_>,
    wanted: Wanted,
    shapes: Option<Vec<TensorShape>>,
) -> Result<Outputs, Error> {
    expect_no_timeout(call)?;
    let slot = queue(call)?;
    let queue = slot.get::<FifoQueue>()?;
    let stated = call.attrs.dtypes("component_types").unwrap_or_default();
    queue.kind().check_types(stated.iter().copied())?;
    let taken = queue.take(wanted, &slot, call.execution.request())?;
    drop(slot);
    let results = (call.name.to_owned(), stated, shapes);
    match taken.get() {
        Some(Ok(taken)) => {
            let all = stacked(taken, &results, call.execution)?;
            return Ok(all.into_iter().map(Output::Ready).collect());
        }
        Some(Err(error)) => return Err(error.clone()),
        None => (),
    }
    let (promises, values): (Vec<Promise<Tensor>>, Vec<_>) =
        results.1.iter().map(|_| AsyncValue::pending()).unzip();
    let execution = call.execution.clone();
    taken.when_settled(move |taken| {
        let all = match taken.get() {
            Some(Ok(taken)) => stacked(taken, &results, &execution),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("it is settled")),
        };
        match all {
            Ok(all) => {
                for (promise, tensor) in promises.into_iter().zip(all) {
                    promise.resolve(tensor);
                }
            }
            Err(error) => promises
                .into_iter()
                .for_each(|promise| promise.fail(error.clone())),
        }
    });
    call.waiting = Some(AsyncValue::available(Chain));
    Ok(values.into_iter().map(Output::Later).collect())
}

/// Returns the tensors of a tuple, or those of several tuples as one for each component.
fn stacked(
    Taken(elements): &Taken,
    (op, types, shapes): &(String, Vec<DType>, Option<Vec<TensorShape>>),
    execution: &ExecutionContext,
) -> Result<Vec<Tensor>, Error> {
    let Some(shapes) = shapes else {
        let only = elements.first();
        let only = only.ok_or_else(|| Error::internal("one tuple was taken"))?;
        return Ok(only.to_vec());
    };
    let allocator = execution.host().allocator();
    let components = types.iter().zip(shapes).enumerate();
    let stack = components.map(|(index, (dtype, shape))| {
        let extents: Vec<usize> = std::iter::once(elements.len())
            .chain(shape.extents())
            .collect();
        let tensors: Vec<Tensor> = elements
            .iter()
            .map(|element| element[index].clone())
            .collect();
        let metadata = (*dtype, TensorShape::new(&extents)?);
        joined((op, allocator), metadata, &tensors)
    });
    stack.collect()
}
