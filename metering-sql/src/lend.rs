//! Lends a script its caller's values in the form that it takes, so `scripted!` needs no conversion per argument.

/// Lends a held value as the type that a script takes: by reference, as a copy, or as a slice or text.
pub trait Lend<'a, T> {
    /// The value, as the script takes it.
    fn lend(&'a self) -> T;
}

impl<'a, T> Lend<'a, &'a T> for T {
    fn lend(&'a self) -> &'a T {
        self
    }
}

impl<'a, T: Copy> Lend<'a, T> for T {
    fn lend(&'a self) -> T {
        *self
    }
}

impl<'a, T> Lend<'a, Option<&'a T>> for Option<T> {
    fn lend(&'a self) -> Option<&'a T> {
        self.as_ref()
    }
}

impl<'a, T> Lend<'a, &'a [T]> for Vec<T> {
    fn lend(&'a self) -> &'a [T] {
        self
    }
}

impl<'a> Lend<'a, &'a str> for String {
    fn lend(&'a self) -> &'a str {
        self
    }
}
