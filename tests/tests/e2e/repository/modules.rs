//! Reads the modules of a crate: which file each is in, what it imports, and which paths of its own crate it uses.
//! Code that is compiled only for tests is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemMod, ItemUse, Macro, UseTree};

/// Where an item is: the modules from the root of its crate, then its name.
pub(crate) type ItemPath = Vec<String>;

/// One module, or several inline ones of one file.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    children: BTreeSet<String>,
    /// Names that `use` brings in, and what they mean.
    imports: BTreeMap<String, ItemPath>,
    /// Modules whose names are all brought in.
    globs: BTreeSet<ItemPath>,
    /// Paths that occur in the code, not in `use`, from the root of the crate.
    paths: BTreeSet<ItemPath>,
    /// Such paths that may begin with an imported name.
    aliased: BTreeSet<ItemPath>,
}

impl Module {
    /// A path that begins with an imported name, with what that name means.
    fn without_alias(&self, used: &[String]) -> Option<ItemPath> {
        let (first, rest) = used.split_first()?;
        Some([self.imports.get(first)?.as_slice(), rest].concat())
    }
}

/// All modules of a crate.
#[derive(Debug, Default)]
pub(crate) struct Modules(BTreeMap<ItemPath, Module>);

impl Modules {
    /// Reads the crate whose root is `file`.
    pub(crate) fn read(file: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(Vec::new(), file, file.parent().unwrap());
        modules
    }

    fn read_file(&mut self, path: ItemPath, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let File { items, .. } = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.read_items(path, &items, file, folder);
    }

    fn read_items(&mut self, path: ItemPath, items: &[Item], file: &Path, folder: &Path) {
        let mut reader = Reader { path: &path, module: Module { file: file.to_owned(), ..Module::default() } };
        for child in items.iter().filter_map(child_module) {
            let _ = reader.module.children.insert(child.ident.to_string());
        }
        items.iter().for_each(|item| reader.visit_item(item));
        let module = reader.module;
        let _ = self.0.insert(path.clone(), module);
        for child in items.iter().filter_map(child_module) {
            let name = child.ident.to_string();
            let (path, folder) = ([path.clone(), vec![name.clone()]].concat(), folder.join(&name));
            match &child.content {
                Some((_, items)) => self.read_items(path, items, file, &folder),
                None => self.read_file(path, &folder.with_extension("rs"), &folder),
            }
        }
    }

    /// The file of every module, with the files that it takes something from.
    pub(crate) fn dependencies(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut all = BTreeMap::<PathBuf, BTreeSet<PathBuf>>::new();
        for (path, module) in &self.0 {
            let aliased = module.aliased.iter().filter_map(|used| module.without_alias(used));
            let used = module.imports.values().chain(&module.globs).chain(&module.paths).cloned().chain(aliased);
            let others = used.filter_map(|used| {
                let home = self.home(&used, 0)?;
                (!path.starts_with(&home) && !home.starts_with(path)).then(|| self.0[&home].file.clone())
            });
            all.entry(module.file.clone()).or_default().extend(others.filter(|file| *file != module.file));
        }
        all
    }

    /// The module that defines an item: re-exports are followed. `None` for an item of another crate.
    fn home(&self, item: &[String], depth: usize) -> Option<ItemPath> {
        let known = (0..=item.len()).rev().find(|end| self.0.contains_key(&item[..*end]))?;
        let (module, rest) = (&self.0[&item[..known]], &item[known..]);
        let Some((name, rest)) = rest.split_first() else { return Some(item.to_vec()) };
        let followed = match module.imports.get(name) {
            Some(meaning) if depth < 20 => self.home(&[meaning.as_slice(), rest].concat(), depth + 1),
            _ => None,
        };
        followed.or_else(|| Some(item[..known].to_vec()))
    }
}

fn child_module(item: &Item) -> Option<&ItemMod> {
    match item {
        Item::Mod(module) if !is_for_tests(&module.attrs) => Some(module),
        _ => None,
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test"),
        meta => meta.path().is_ident("test"),
    })
}

/// Collects what one module uses.
struct Reader<'p> {
    path: &'p ItemPath,
    module: Module,
}

impl Reader<'_> {
    /// A path as seen from the root of the crate; `None` when it leads out of the crate.
    fn path_from_root(&self, path: &[String]) -> Option<ItemPath> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([self.path.as_slice(), rest].concat()),
            "super" => {
                let parent =
                    Reader { path: &self.path[..self.path.len().checked_sub(1)?].to_vec(), module: Module::default() };
                match rest.first().map(String::as_str) {
                    Some("super") => parent.path_from_root(rest),
                    _ => Some([parent.path.as_slice(), rest].concat()),
                }
            }
            name if self.module.children.contains(name) => Some([self.path.as_slice(), path].concat()),
            _ => None,
        }
    }

    fn import(&mut self, tree: &UseTree, before: &[String]) {
        match tree {
            UseTree::Path(path) => self.import(&path.tree, &[before, &[path.ident.to_string()]].concat()),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, before)),
            UseTree::Name(name) if name.ident == "self" => {
                self.import_as(before.last().cloned().unwrap_or_default(), before);
            }
            UseTree::Name(name) => {
                self.import_as(name.ident.to_string(), &[before, &[name.ident.to_string()]].concat())
            }
            UseTree::Rename(name) => {
                self.import_as(name.rename.to_string(), &[before, &[name.ident.to_string()]].concat());
            }
            UseTree::Glob(_) => self.module.globs.extend(self.path_from_root(before)),
        }
    }

    fn import_as(&mut self, name: String, path: &[String]) {
        let Some(path) = self.path_from_root(path) else { return };
        let _ = self.module.imports.insert(name, path);
    }

    fn add(&mut self, path: ItemPath) {
        match self.path_from_root(&path) {
            Some(path) => self.module.paths.insert(path),
            None => self.module.aliased.insert(path),
        };
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            // Other modules are read by themselves.
            Item::Mod(_) => return,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let tokens = call.tokens.to_string();
        for rest in tokens.split("crate :: ").skip(1) {
            let names = rest.split(" :: ").map(|name| name.split(|c: char| !c.is_alphanumeric() && c != '_').next());
            self.add(["crate"].into_iter().chain(names.flatten()).map(str::to_owned).collect());
        }
        visit::visit_macro(self, call);
    }
}
