/// Shows the calls of a subject to a visitor.
macro_rules! register {
    ($($call:ty),* $(,)?) => {
        pub(super) fn each(visitor: &mut impl $crate::call::Visitor) {
            $(visitor.call::<$call>();)*
        }
    };
}

pub(super) use register;
