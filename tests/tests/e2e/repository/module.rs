//! The parsed text of one module: the names that it defines and imports, and the paths that its code uses. Code that is
//! compiled only for tests is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// Where an item is: the modules from the root of its crate, then its name. Or a path as the code has it.
pub(crate) type ItemPath = Vec<String>;

/// A name that `use` brings in.
#[derive(Debug)]
pub(crate) struct Import {
    /// The path as written.
    pub(crate) path: ItemPath,
    /// Other modules may import it from this one.
    pub(crate) is_reexport: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    pub(crate) children: BTreeSet<String>,
    /// The names of its own items, without modules.
    pub(crate) items: BTreeSet<String>,
    pub(crate) imports: BTreeMap<String, Import>,
    /// Imports of all names of a module or an enum.
    pub(crate) globs: Vec<Import>,
    /// Paths that occur in the code, not in `use`.
    pub(crate) paths: BTreeSet<ItemPath>,
}

impl Module {
    pub(crate) fn read(file: &Path, items: &[Item]) -> Self {
        let mut module = Self { file: file.to_owned(), ..Self::default() };
        module.children.extend(child_modules(items).map(|child| child.ident.to_string()));
        items.iter().for_each(|item| module.visit_item(item));
        module
    }

    fn import(&mut self, tree: &UseTree, before: &[String], is_reexport: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (name, path) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &with(&path.ident), is_reexport),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, before, is_reexport));
            }
            UseTree::Glob(_) => return self.globs.push(Import { path: before.to_vec(), is_reexport }),
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(name) if name.ident == "self" => (name.rename.to_string(), before.to_vec()),
            UseTree::Rename(name) => (name.rename.to_string(), with(&name.ident)),
        };
        let _ = self.imports.insert(name, Import { path, is_reexport });
    }

    /// The paths in the arguments of a macro or of an attribute.
    fn add_tokens(&mut self, tokens: &TokenStream) {
        let mut path = ItemPath::new();
        let mut colons = 0;
        for token in tokens.clone() {
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => {
                    path.push(ident.to_string());
                    colons = 0;
                }
                _ => {
                    let _ = self.paths.insert(std::mem::take(&mut path));
                    colons = 0;
                    match &token {
                        TokenTree::Ident(ident) => path.push(ident.to_string()),
                        TokenTree::Group(group) => self.add_tokens(&group.stream()),
                        _ => (),
                    }
                }
            }
        }
        let _ = self.paths.insert(path);
    }
}

/// The modules that are declared among `items`, without those of tests.
pub(crate) fn child_modules(items: &[Item]) -> impl Iterator<Item = &ItemMod> {
    items.iter().filter_map(|item| match item {
        Item::Mod(module) if !is_for_tests(&module.attrs) => Some(module),
        _ => None,
    })
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test"),
        meta => meta.path().is_ident("test"),
    })
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name): (&[Attribute], _) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Impl(item) => (&item.attrs, None),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Use(item) => (&item.attrs, None),
            // Other modules are read by themselves.
            Item::Mod(_) => return,
            _ => (&[], None),
        };
        if !is_for_tests(attributes) {
            self.items.extend(name.map(ToString::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, method: &'ast ImplItemFn) {
        if !is_for_tests(&method.attrs) {
            visit::visit_impl_item_fn(self, method);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    /// The path in `pub(in path)` is not a use of that module.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let _ = self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.add_tokens(&call.tokens);
        visit::visit_macro(self, call);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            syn::Meta::List(list) => self.add_tokens(&list.tokens),
            meta => visit::visit_meta(self, meta),
        }
    }
}
