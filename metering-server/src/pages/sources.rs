//! The source files of the pages. Modules among them are read once, no matter how many pages use them.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::pages::asset_error::AssetError;
use crate::pages::module::Module;

/// The files, by name.
#[derive(Debug)]
pub(super) struct Sources {
    files: BTreeMap<String, Vec<u8>>,
    modules: BTreeMap<String, Rc<Module>>,
}

impl Sources {
    pub(super) const fn new(files: BTreeMap<String, Vec<u8>>) -> Self {
        Self { files, modules: BTreeMap::new() }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// A file; `from` names what refers to it in the error.
    pub(super) fn file(&self, name: &str, from: &str) -> Result<&[u8], AssetError> {
        let unknown = || AssetError::Unknown { from: from.to_owned(), name: name.to_owned() };
        self.files.get(name).map(Vec::as_slice).ok_or_else(unknown)
    }

    /// A file that is text.
    pub(super) fn text(&self, name: &str, from: &str) -> Result<&str, AssetError> {
        std::str::from_utf8(self.file(name, from)?).map_err(|_| AssetError::NotText(name.to_owned()))
    }

    /// A file that is a module.
    pub(super) fn module(&mut self, name: &str, from: &str) -> Result<Rc<Module>, AssetError> {
        if let Some(module) = self.modules.get(name) {
            return Ok(Rc::clone(module));
        }
        let module = Module::read(self.text(name, from)?).map_err(|error| AssetError::module(name, error))?;
        let module = Rc::new(module);
        self.modules.insert(name.to_owned(), Rc::clone(&module));
        Ok(module)
    }

    /// The licence of a vendor's file, which has the same name.
    pub(super) fn licence(&self, name: &str) -> Option<String> {
        let licence = format!("{}.license.txt", name.rsplit_once('.')?.0);
        self.files.contains_key(&licence).then_some(licence)
    }
}
