//! Messages between tasks as bytes, one way to write each. What is read was written by somebody else: anything may stand
//! there.
//!
//! | Part | Bytes |
//! | --- | --- |
//! | message | version u8, kind u8: call (0), value (1), cancel (2) |
//! | call | number u64, incarnation, time left, request |
//! | value | number u64, incarnation, context u64, name text, number of buffers u32, buffers |
//! | cancel | how many u32, numbers u64, error |
//! | incarnation, time left | whether there is one u8, 16 bytes or microseconds u64 |
//! | buffer | whether its bytes follow u8; their length u32 and they, or the length u64 of what comes by itself |
//! | answer | version u8, whether it is an error u8, error or reply |
//! | object | prefix u64, local u64, device text |

use std::time::Duration;

use tfrt_async::Error;
use tfrt_host::DeviceKind;

use crate::bytes::{Reader, Writer};
use crate::cluster::Cluster;
use crate::ids::{ContextId, Incarnation, ObjectId, ObjectKey};
use crate::message::{
    CreateContext, DeviceInfo, ExecuteOp, IntegerAttribute, Key, Probed, Reply, Request,
    RequestedOutput,
};

const VERSION: u8 = 1;
/// The most bytes of the name of a kind of devices: each name is kept for the life of the process.
const MAX_KIND_BYTES: usize = 64;

/// A message of a client to a server.
#[derive(Debug)]
pub enum Said {
    /// It asks for something.
    Call {
        /// The number of the request.
        number: u64,
        /// The start of the process that it is for, if the client knows one.
        to: Option<Incarnation>,
        /// The time that the client waits.
        time_left: Option<Duration>,
        /// The request.
        request: Request,
    },
    /// It sends a value.
    Value {
        /// The number of the request.
        number: u64,
        /// The start of the process that it is for, if the client knows one.
        to: Option<Incarnation>,
        /// Where the value goes.
        key: Key,
        /// Its buffers.
        buffers: Vec<Part>,
    },
    /// It has given up requests.
    Cancel {
        /// The numbers of the requests.
        numbers: Vec<u64>,
        /// Why.
        reason: Error,
    },
}

/// A buffer of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its bytes.
    Here(Vec<u8>),
    /// The length of what comes by a stream of its own.
    Streamed(u64),
}

/// Returns the bytes of a message.
pub fn write(said: &Said) -> Vec<u8> {
    let mut to = Writer(vec![VERSION]);
    match said {
        Said::Call {
            number,
            to: start,
            time_left,
            request,
        } => {
            to.u8(0);
            to.u64(*number);
            to.incarnation(*start);
            to.u8(time_left.is_some().into());
            if let Some(left) = time_left {
                to.u64(u64::try_from(left.as_micros()).unwrap_or(u64::MAX));
            }
            to.request(request);
        }
        Said::Value {
            number,
            to: start,
            key,
            buffers,
        } => {
            to.u8(1);
            to.u64(*number);
            to.incarnation(*start);
            to.u64(key.context.0);
            to.text(&key.name);
            to.all(buffers, |to, part| match part {
                Part::Here(bytes) => {
                    to.u8(1);
                    to.len(bytes.len());
                    to.0.extend(bytes);
                }
                Part::Streamed(len) => {
                    to.u8(0);
                    to.u64(*len);
                }
            });
        }
        Said::Cancel { numbers, reason } => {
            to.u8(2);
            to.all(numbers, |to, number| to.u64(*number));
            to.error(reason);
        }
    }
    to.0
}

/// Reads a message.
///
/// # Errors
///
/// `InvalidArgument` where the bytes are none: where, what was expected, what was found.
pub fn read(bytes: &[u8]) -> Result<Said, Error> {
    let mut from = Reader::new("a message between tasks", bytes);
    from.version()?;
    let said = match from.u8()? {
        0 => Said::Call {
            number: from.u64()?,
            to: from.incarnation()?,
            time_left: match from.flag()? {
                true => Some(Duration::from_micros(from.u64()?)),
                false => None,
            },
            request: from.request()?,
        },
        1 => Said::Value {
            number: from.u64()?,
            to: from.incarnation()?,
            key: Key {
                context: ContextId(from.u64()?),
                name: from.text()?.to_owned(),
            },
            buffers: from.all(5, |from| match from.flag()? {
                true => {
                    let len = from.count(1)?;
                    Ok(Part::Here(from.take(len)?.to_vec()))
                }
                false => from.u64().map(Part::Streamed),
            })?,
        },
        2 => Said::Cancel {
            numbers: from.all(8, |from| from.u64())?,
            reason: from.error()?,
        },
        other => return Err(from.wrong(&format!("a kind of message below 3, found {other}"))),
    };
    from.end()?;
    Ok(said)
}

/// Returns the bytes of an answer.
pub fn write_answer(answer: &Result<Reply, Error>) -> Vec<u8> {
    let mut to = Writer(vec![VERSION, answer.is_err().into()]);
    match answer {
        Err(error) => to.error(error),
        Ok(Reply::Done) => to.u8(0),
        Ok(Reply::Devices(devices)) => {
            to.u8(1);
            to.all(devices, Writer::device);
        }
        Ok(Reply::ContextCreated(chain)) => {
            to.u8(2);
            to.object(chain);
        }
        Ok(Reply::FunctionRegistered(devices)) => {
            to.u8(3);
            to.all(devices, |to, device| to.text(device));
        }
        Ok(Reply::Executed(metadata)) => {
            to.u8(4);
            to.all(metadata, |to, metadata| {
                to.u8(metadata.is_err().into());
                match metadata {
                    Ok(bytes) => {
                        to.len(bytes.len());
                        to.0.extend(bytes);
                    }
                    Err(error) => to.error(error),
                }
            });
        }
        Ok(Reply::Probed(probed)) => {
            to.u8(5);
            to.nanoseconds(probed.round_trip);
            to.nanoseconds(probed.sending);
            to.u64(probed.clock_offset_ns.cast_unsigned());
        }
        Ok(Reply::Clock(nanoseconds)) => {
            to.u8(6);
            to.u64(*nanoseconds);
        }
    }
    to.0
}

/// Reads an answer: the outer error is that of reading, the inner one the peer's.
///
/// # Errors
///
/// `InvalidArgument` where the bytes are none.
pub fn read_answer(bytes: &[u8]) -> Result<Result<Reply, Error>, Error> {
    let mut from = Reader::new("an answer of a task", bytes);
    from.version()?;
    let answer = match from.flag()? {
        true => Err(from.error()?),
        false => Ok(from.reply()?),
    };
    from.end()?;
    Ok(answer)
}

impl Writer {
    fn all<T>(&mut self, things: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.len(things.len());
        things.iter().for_each(|thing| write(self, thing));
    }

    fn incarnation(&mut self, incarnation: Option<Incarnation>) {
        self.u8(incarnation.is_some().into());
        if let Some(Incarnation(bits)) = incarnation {
            self.0.extend(bits.to_le_bytes());
        }
    }

    fn object(&mut self, object: &ObjectId) {
        self.u64(object.key.prefix);
        self.u64(object.key.local);
        self.text(&object.device);
    }

    fn output(&mut self, output: &RequestedOutput) {
        self.object(&output.id);
        self.u8(output.need_metadata.into());
    }

    fn device(&mut self, device: &DeviceInfo) {
        self.text(&device.name);
        self.text(device.kind.name());
    }

    fn attribute(&mut self, attribute: &IntegerAttribute) {
        self.text(&attribute.name);
        self.u8(attribute.is_array.into());
        self.all(&attribute.values, |to, value| to.u64(value.cast_unsigned()));
    }

    fn request(&mut self, request: &Request) {
        match request {
            Request::GetDevices => self.u8(0),
            Request::CreateContext(create) => {
                self.u8(1);
                self.u64(create.context.0);
                self.text(&create.cluster.shared().to_json());
                self.task(&create.task);
                self.all(&create.devices, Writer::device);
                self.u8(create.is_multi_client.into());
            }
            Request::CloseContext { context } => {
                self.u8(2);
                self.u64(context.0);
            }
            Request::SendReadyChains {
                context,
                ready_chains,
            } => {
                self.u8(3);
                self.u64(context.0);
                self.all(ready_chains, Writer::object);
            }
            Request::KeepAlive { context } => {
                self.u8(4);
                self.u64(context.0);
            }
            Request::RegisterFunction {
                context,
                name,
                program,
                need_compilation,
            } => {
                self.u8(5);
                self.u64(context.0);
                self.text(name);
                self.text(program);
                self.u8((*need_compilation).into());
            }
            Request::RemoteExecute {
                context,
                name,
                inputs,
                outputs,
            } => {
                self.u8(6);
                self.u64(context.0);
                self.text(name);
                self.all(inputs, Writer::object);
                self.all(outputs, Writer::output);
            }
            Request::RemoteExecuteOp(execute) => {
                self.u8(7);
                self.u64(execute.context.0);
                self.text(&execute.handler);
                self.text(&execute.op);
                self.object(&execute.in_chain);
                self.object(&execute.out_chain);
                self.all(&execute.inputs, Writer::object);
                self.all(&execute.outputs, Writer::output);
                self.all(&execute.attributes, Writer::attribute);
            }
            Request::DeleteRemoteObjects { context, objects } => {
                self.u8(8);
                self.u64(context.0);
                self.all(objects, Writer::object);
            }
            Request::ReadClock => self.u8(11),
            Request::Join { task, n_tasks } => {
                self.u8(9);
                self.task(task);
                self.u64((*n_tasks).into());
            }
            Request::Probe {
                context,
                to,
                n_bytes,
            } => {
                self.u8(10);
                self.u64(context.0);
                self.task(to);
                self.u64(*n_bytes);
            }
        }
    }

    fn nanoseconds(&mut self, time: Duration) {
        self.u64(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl Reader<'_> {
    /// Reads things of so many bytes each or more.
    fn all<T>(
        &mut self,
        min_bytes_each: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = self.count(min_bytes_each)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn version(&mut self) -> Result<(), Error> {
        match self.u8()? {
            VERSION => Ok(()),
            other => Err(self.wrong(&format!("version {VERSION}, found {other}"))),
        }
    }

    fn incarnation(&mut self) -> Result<Option<Incarnation>, Error> {
        Ok(match self.flag()? {
            true => Some(Incarnation(u128::from_le_bytes(self.array()?))),
            false => None,
        })
    }

    fn context(&mut self) -> Result<ContextId, Error> {
        self.u64().map(ContextId)
    }

    fn object(&mut self) -> Result<ObjectId, Error> {
        Ok(ObjectId {
            key: ObjectKey {
                prefix: self.u64()?,
                local: self.u64()?,
            },
            device: self.text()?.into(),
        })
    }

    fn objects(&mut self) -> Result<Vec<ObjectId>, Error> {
        self.all(20, Self::object)
    }

    fn outputs(&mut self) -> Result<Vec<RequestedOutput>, Error> {
        self.all(21, |from| {
            Ok(RequestedOutput {
                id: from.object()?,
                need_metadata: from.flag()?,
            })
        })
    }

    fn device(&mut self) -> Result<DeviceInfo, Error> {
        let name = self.text()?.to_owned();
        let kind = self.text()?;
        if kind.len() > MAX_KIND_BYTES {
            let len = kind.len();
            return Err(self.wrong(&format!(
                "a kind of devices of at most {MAX_KIND_BYTES} bytes before, found {len}"
            )));
        }
        let kind = DeviceKind::interned(kind);
        Ok(DeviceInfo { name, kind })
    }

    fn devices(&mut self) -> Result<Vec<DeviceInfo>, Error> {
        self.all(8, Self::device)
    }

    fn attribute(&mut self) -> Result<IntegerAttribute, Error> {
        Ok(IntegerAttribute {
            name: self.text()?.to_owned(),
            is_array: self.flag()?,
            values: self.all(8, |from| from.u64().map(u64::cast_signed))?,
        })
    }

    fn request(&mut self) -> Result<Request, Error> {
        Ok(match self.u8()? {
            0 => Request::GetDevices,
            1 => Request::CreateContext(Box::new(CreateContext {
                context: self.context()?,
                cluster: Cluster::from_json(self.text()?)?,
                task: self.task()?,
                devices: self.devices()?,
                is_multi_client: self.flag()?,
            })),
            2 => Request::CloseContext {
                context: self.context()?,
            },
            3 => Request::SendReadyChains {
                context: self.context()?,
                ready_chains: self.objects()?,
            },
            4 => Request::KeepAlive {
                context: self.context()?,
            },
            5 => Request::RegisterFunction {
                context: self.context()?,
                name: self.text()?.to_owned(),
                program: self.text()?.to_owned(),
                need_compilation: self.flag()?,
            },
            6 => Request::RemoteExecute {
                context: self.context()?,
                name: self.text()?.to_owned(),
                inputs: self.objects()?,
                outputs: self.outputs()?,
            },
            7 => Request::RemoteExecuteOp(Box::new(ExecuteOp {
                context: self.context()?,
                handler: self.text()?.to_owned(),
                op: self.text()?.to_owned(),
                in_chain: self.object()?,
                out_chain: self.object()?,
                inputs: self.objects()?,
                outputs: self.outputs()?,
                attributes: self.all(9, Self::attribute)?,
            })),
            8 => Request::DeleteRemoteObjects {
                context: self.context()?,
                objects: self.objects()?,
            },
            9 => Request::Join {
                task: self.task()?,
                n_tasks: match u32::try_from(self.u64()?) {
                    Ok(n_tasks) => n_tasks,
                    Err(_) => return Err(self.wrong("a number of tasks below 2^32 before")),
                },
            },
            10 => Request::Probe {
                context: self.context()?,
                to: self.task()?,
                n_bytes: self.u64()?,
            },
            11 => Request::ReadClock,
            other => return Err(self.wrong(&format!("a request below 12, found {other}"))),
        })
    }

    fn reply(&mut self) -> Result<Reply, Error> {
        Ok(match self.u8()? {
            0 => Reply::Done,
            1 => Reply::Devices(self.devices()?),
            2 => Reply::ContextCreated(self.object()?),
            3 => Reply::FunctionRegistered(self.all(4, |from| from.text().map(str::to_owned))?),
            4 => Reply::Executed(self.all(5, |from| {
                Ok(match from.flag()? {
                    true => Err(from.error()?),
                    false => {
                        let len = from.count(1)?;
                        Ok(from.take(len)?.to_vec())
                    }
                })
            })?),
            5 => Reply::Probed(Probed {
                round_trip: Duration::from_nanos(self.u64()?),
                sending: Duration::from_nanos(self.u64()?),
                clock_offset_ns: self.u64()?.cast_signed(),
            }),
            6 => Reply::Clock(self.u64()?),
            other => return Err(self.wrong(&format!("a reply below 7, found {other}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Address;

    fn messages() -> Vec<Said> {
        let context = ContextId(7);
        let object = |local| ObjectId {
            key: ObjectKey { prefix: 3, local },
            device: "/job:w/task:1/device:CPU:0".into(),
        };
        let outputs = vec![RequestedOutput {
            id: object(4),
            need_metadata: true,
        }];
        let task = crate::task::parse("/job:w/task:0").unwrap();
        let addresses = vec![Address::Unix("/run/a".to_owned())];
        let requests = vec![
            Request::GetDevices,
            Request::ReadClock,
            Request::CreateContext(Box::new(CreateContext {
                context,
                cluster: Cluster::of_job("w", addresses).unwrap(),
                task: task.clone(),
                devices: vec![DeviceInfo {
                    name: "CPU:0".to_owned(),
                    kind: DeviceKind::CPU,
                }],
                is_multi_client: true,
            })),
            Request::CloseContext { context },
            Request::SendReadyChains {
                context,
                ready_chains: vec![object(1), object(2)],
            },
            Request::KeepAlive { context },
            Request::RegisterFunction {
                context,
                name: "f".to_owned(),
                program: "func.func @f() { tfrt.return }".to_owned(),
                need_compilation: true,
            },
            Request::RemoteExecute {
                context,
                name: "f".to_owned(),
                inputs: vec![object(5)],
                outputs: outputs.clone(),
            },
            Request::RemoteExecuteOp(Box::new(ExecuteOp {
                context,
                handler: "CPU:0".to_owned(),
                op: "tf.Add".to_owned(),
                in_chain: object(6),
                out_chain: object(7),
                inputs: vec![object(8)],
                outputs,
                attributes: vec![IntegerAttribute {
                    name: "axis".to_owned(),
                    values: vec![-1, 2],
                    is_array: true,
                }],
            })),
            Request::DeleteRemoteObjects {
                context,
                objects: vec![object(9)],
            },
            Request::Join {
                task: task.clone(),
                n_tasks: 2,
            },
            Request::Probe {
                context,
                to: task.clone(),
                n_bytes: 1 << 20,
            },
        ];
        let call = |request| Said::Call {
            number: 9,
            to: Some(Incarnation(1 << 100)),
            time_left: Some(Duration::from_millis(5)),
            request,
        };
        let mut all: Vec<Said> = requests.into_iter().map(call).collect();
        all.push(Said::Value {
            number: 10,
            to: None,
            key: Key {
                context,
                name: "k".to_owned(),
            },
            buffers: vec![Part::Here(vec![1, 2]), Part::Streamed(1 << 40)],
        });
        all.push(Said::Cancel {
            numbers: vec![11, 13],
            reason: Error::cancelled("enough").with_task(task),
        });
        all
    }

    fn answers() -> Vec<Vec<u8>> {
        let chain = ObjectId {
            key: ObjectKey {
                prefix: 1,
                local: 2,
            },
            device: "d".into(),
        };
        let device = DeviceInfo {
            name: "CPU:0".to_owned(),
            kind: DeviceKind::CPU,
        };
        let answers = [
            Ok(Reply::Done),
            Ok(Reply::Devices(vec![device])),
            Ok(Reply::ContextCreated(chain)),
            Ok(Reply::FunctionRegistered(vec!["d".to_owned()])),
            Ok(Reply::Executed(vec![
                Ok(vec![1]),
                Err(Error::not_found("x")),
            ])),
            Ok(Reply::Probed(Probed {
                round_trip: Duration::from_micros(30),
                sending: Duration::from_millis(1),
                clock_offset_ns: -5,
            })),
            Ok(Reply::Clock(1 << 60)),
            Err(Error::unavailable("y")),
        ];
        answers.iter().map(write_answer).collect()
    }

    #[test]
    fn what_is_read_was_written() {
        for said in messages() {
            let bytes = write(&said);
            let again = read(&bytes).unwrap();
            assert_eq!(format!("{again:?}"), format!("{said:?}"));
            assert_eq!(write(&again), bytes);
        }
        for bytes in answers() {
            assert_eq!(write_answer(&read_answer(&bytes).unwrap()), bytes);
        }
    }

    #[test]
    fn bytes_that_are_no_message_are_errors() {
        let messages: Vec<Vec<u8>> = messages().iter().map(write).collect();
        for bytes in &messages {
            for len in 0..bytes.len() {
                assert!(read(&bytes[..len]).is_err(), "{len} of {bytes:?}");
            }
            assert!(read(&[&bytes[..], &[0]].concat()).is_err());
        }
        for bytes in answers() {
            for len in 0..bytes.len() {
                assert!(read_answer(&bytes[..len]).is_err(), "{len} of {bytes:?}");
            }
        }
        // Any byte may be any other: there is an error or another message, and no panic.
        for bytes in messages.iter().cloned().chain(answers()) {
            for index in 0..bytes.len() {
                for byte in [0, 1, 2, 0x7f, 0x80, 0xff] {
                    let mut odd = bytes.clone();
                    odd[index] = byte;
                    drop((read(&odd), read_answer(&odd)));
                }
            }
        }
        let error = read(&[1, 9]).unwrap_err();
        assert_eq!(
            error.message(),
            "a message between tasks, byte 2: expected a kind of message below 3, found 9"
        );
    }
}
