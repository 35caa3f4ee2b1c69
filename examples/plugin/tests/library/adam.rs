//! Adam by the plugin: steps and wrong calls, and a network that is trained by it, with the bits of the runtime's own.

use std::error::Error;
use std::path::Path;

use tfrt::corert::OpAttrs;
use tfrt::eager::{Eager, Handle};

use crate::{library, runtime};

#[expect(dead_code, reason = "the tests call what `main` calls")]
#[path = "../../../networks/examples/adam_digits.rs"]
mod adam_digits;

/// Trains a network on digits; returns the lines that are told of it.
fn train(options: &[&str], files: &[(&str, &Path)]) -> Result<Vec<String>, Box<dyn Error>> {
    let options = options.iter().map(|option| (*option).to_owned());
    let files = files
        .iter()
        .flat_map(|(option, path)| [(*option).to_owned(), path.display().to_string()]);
    let mut said = Vec::new();
    adam_digits::run(options.chain(files), &mut said)?;
    let text = String::from_utf8(said)?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[test]
fn training_has_the_bits_of_the_runtimes_own_also_when_it_is_stopped() {
    let own = train(&["--steps", "300"], &[]).unwrap();
    assert!(own[0].starts_with("300 steps: loss"), "{own:?}");
    let plugin = ("--plugin", &*library());
    let whole = train(&["--steps", "300"], &[plugin]).unwrap();
    assert_eq!(
        whole[0],
        "kernels of the plugin: ExampleScale, ResourceApplyAdam"
    );
    // Losses, accuracy, and all bits of the weights and of the state.
    assert_eq!(whole[1..], own);
    let name = format!("tfrt-plugin-adam-{}.safetensors", std::process::id());
    let half = std::env::temp_dir().join(name);
    let saved = train(&["--steps", "150"], &[plugin, ("--save", &half)]);
    let options = ["--steps", "300", "--threads", "2"];
    let rest = train(&options, &[plugin, ("--load", &half)]);
    let by_own = train(&options, &[("--load", &half)]);
    let _removed = std::fs::remove_file(&half);
    assert_ne!(saved.unwrap()[2..], own[1..]);
    let (rest, by_own) = (rest.unwrap(), by_own.unwrap());
    assert_eq!(rest[1], "goes on after step 150");
    assert_eq!(rest[3..], own[1..]);
    assert_eq!(by_own[2..], own[1..]);
}

/// Three variables, and what a step takes beside them.
struct Bed {
    eager: Eager,
    variables: [tfrt::eager::Variable; 3],
}

impl Bed {
    fn new(eager: Eager) -> Bed {
        let starts = [[1.0_f32, -2.0, 3.0], [0.5; 3], [0.25; 3]];
        let variables = starts.map(|start| eager.variable(eager.tensor(&[3], &start).unwrap()));
        Bed { eager, variables }
    }

    fn scalars(&self) -> Vec<Handle> {
        let scalars = [0.9_f32, 0.999, 0.1, 0.9, 0.999, 1e-7];
        scalars
            .map(|scalar| self.eager.scalar(scalar).unwrap())
            .into()
    }

    fn step(
        &self,
        variables: [usize; 3],
        scalars: &[Handle],
        gradient: &Handle,
        attrs: &OpAttrs,
    ) -> Result<(), String> {
        let variables = variables.map(|index| self.variables[index].handle());
        let inputs: Vec<&Handle> = variables.iter().chain(scalars).chain([gradient]).collect();
        let told = |error: tfrt::Error| error.message().to_owned();
        self.eager
            .op("tf.ResourceApplyAdam", inputs.as_slice(), attrs)
            .map_err(told)?;
        let done = self.eager.context().effects();
        let queue = self.eager.core().host().queue();
        queue.await_all(&[done.as_any().clone()]).unwrap();
        done.error()
            .map_or(Ok(()), |error| Err(told(error.clone())))
    }

    fn bits(&self) -> Vec<Vec<u32>> {
        let bits = |variable: &tfrt::eager::Variable| {
            let list = variable.read().to_vec::<f32>().unwrap();
            list.iter().map(|one| one.to_bits()).collect()
        };
        self.variables.iter().map(bits).collect()
    }
}

#[test]
fn steps_have_the_bits_of_the_runtimes_own_for_each_attribute() {
    let (_plugin, by_plugin) = runtime();
    for (use_locking, use_nesterov) in [(false, false), (false, true), (true, false), (true, true)]
    {
        let mut attrs = OpAttrs::new();
        attrs.set("use_locking", use_locking).unwrap();
        attrs.set("use_nesterov", use_nesterov).unwrap();
        let take = |eager: Eager| {
            let bed = Bed::new(eager);
            let gradient = bed.eager.tensor(&[3], &[0.3_f32, -1.7, 0.0]).unwrap();
            for _ in 0..3 {
                let scalars = bed.scalars();
                bed.step([0, 1, 2], &scalars, &gradient, &attrs).unwrap();
            }
            bed.bits()
        };
        let own = take(Eager::new(&tfrt::Runtime::builder().build()));
        assert_eq!(take(Eager::new(&by_plugin)), own);
    }
}

#[test]
fn wrong_calls_are_told_and_change_nothing() {
    let (_plugin, runtime) = runtime();
    let fails = |wrong: &dyn Fn(&Bed) -> Result<(), String>| {
        let bed = Bed::new(Eager::new(&runtime));
        let before = bed.bits();
        let told = wrong(&bed).unwrap_err();
        let after = Bed::bits(&Bed {
            eager: Eager::new(&runtime),
            variables: bed.variables,
        });
        assert_eq!(before, after, "{told}");
        told
    };
    let attrs = OpAttrs::new();
    let told = fails(&|bed| {
        let gradient = bed.eager.tensor(&[2], &[1.0_f32; 2]).unwrap();
        bed.step([0, 1, 2], &bed.scalars(), &gradient, &attrs)
    });
    let expected = "expected variables and a gradient of one shape and of float";
    assert_eq!(told, expected);
    let told = fails(&|bed| {
        let gradient = bed.eager.tensor(&[3], &[1.0_f32; 3]).unwrap();
        bed.step([0, 1, 1], &bed.scalars(), &gradient, &attrs)
    });
    assert_eq!(told, "expected different variables");
    let told = fails(&|bed| {
        let gradient = bed.eager.tensor(&[3], &[1.0_f32; 3]).unwrap();
        let mut scalars = bed.scalars();
        scalars[2] = bed.eager.tensor(&[1], &[0.1_f32]).unwrap();
        bed.step([0, 1, 2], &scalars, &gradient, &attrs)
    });
    assert_eq!(told, "a number is not a scalar");
}
