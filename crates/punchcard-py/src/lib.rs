//! The Python extension module `punchcard._core`: thin bindings, no logic.

use pyo3::prelude::*;

mod engine;
mod errors;
mod grammars;
#[cfg(feature = "local")]
mod local;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    engine::register(module)?;
    grammars::register(module)?;
    #[cfg(feature = "local")]
    module.add_class::<local::LocalRuntime>()?;
    Ok(())
}
