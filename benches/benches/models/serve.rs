//! A model through the library, run as often as is asked for, as the peers do.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use tfrt::model::Outputs;
use tfrt::{Model, Runtime};
use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_benches::measure::Clock;

/// Answers for a number with the nanoseconds that so many calls take, for `results` with the elements of the first.
pub fn serve(model: &Path, inputs: &Path, n_threads: usize) {
    let queue: Arc<dyn ConcurrentWorkQueue> = match n_threads {
        1 => Arc::new(SingleThreadedWorkQueue::new()),
        n => Arc::new(MultiThreadedWorkQueue::new(n, 2).expect("threads can be had")),
    };
    let runtime = Runtime::builder().queue(queue).build();
    let model = match runtime.open_model(model) {
        Ok(model) => model,
        Err(error) => return eprintln!("{error}"),
    };
    let given = tfrt_benches::whole::inputs(inputs, &runtime);
    let call = |model: &Model| -> Outputs {
        let outputs = model.call(&runtime.context(), &given[..]).wait();
        outputs.unwrap_or_else(|error| panic!("{error}"))
    };
    drop(call(&model));
    println!("tfrt");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.as_str() {
            "results" => {
                let outputs = call(&model);
                let name = model.outputs()[0].name.clone();
                let tensor = outputs.tensor(&name).expect("it is a tensor");
                let tensor = tensor.as_dense().expect("of numbers");
                let reading = tensor.read().expect("nobody writes");
                let floats = reading.elements::<f32>().expect("floats").iter();
                println!(
                    "{}",
                    floats.map(f32::to_string).collect::<Vec<_>>().join(" ")
                );
            }
            n_times => {
                let start = Clock::Wall.now();
                for _ in 0..n_times.parse().unwrap_or(1) {
                    drop(call(&model));
                }
                println!("{}", Clock::Wall.now().saturating_sub(start).as_nanos());
            }
        }
        std::io::stdout().flush().expect("somebody listens");
    }
}
