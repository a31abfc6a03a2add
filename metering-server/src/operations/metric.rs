//! Declares a metric where it is counted: with its name comes its help, for Prometheus.

/// A counter of this name, with labels: `counter!("name", "Help", "label" => value)`.
macro_rules! counter {
    ($name:literal, $help:literal $(, $($labels:tt)+)?) => {
        $crate::operations::metric::declared!(counter, describe_counter, $name, $help, $($($labels)+)?)
    };
}

/// A gauge, likewise.
macro_rules! gauge {
    ($name:literal, $help:literal $(, $($labels:tt)+)?) => {
        $crate::operations::metric::declared!(gauge, describe_gauge, $name, $help, $($($labels)+)?)
    };
}

/// A histogram, likewise.
macro_rules! histogram {
    ($name:literal, $help:literal $(, $($labels:tt)+)?) => {
        $crate::operations::metric::declared!(histogram, describe_histogram, $name, $help, $($($labels)+)?)
    };
}

/// The recorder must be installed before: it gets the help with the first use.
macro_rules! declared {
    ($kind:ident, $describe:ident, $name:literal, $help:literal, $($labels:tt)*) => {{
        static DESCRIBED: std::sync::Once = std::sync::Once::new();
        DESCRIBED.call_once(|| ::metrics::$describe!($name, $help));
        ::metrics::$kind!($name, $($labels)*)
    }};
}

pub(crate) use {counter, declared, gauge, histogram};
