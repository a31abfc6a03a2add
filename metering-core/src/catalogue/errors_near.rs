//! The shape for a request that matches no route: a misspelt path deserves an error that its client can show.

use crate::catalogue::error_shape::ErrorShape;
use crate::catalogue::route::Route;

/// The shape that all routes with the most leading path segments in common have. The service's own shape if they
/// differ, or if no route matches the beginning of the path.
pub(super) fn near(path: &str, routes: &[Route]) -> ErrorShape {
    let (mut longest, mut shape) = (0, ErrorShape::Own);
    for route in routes {
        let segments = shared_segments(path, &route.template);
        if segments > longest {
            (longest, shape) = (segments, route.errors);
        } else if segments == longest && shape != route.errors {
            shape = ErrorShape::Own;
        }
    }
    shape
}

/// How many segments of a path match the beginning of a template.
fn shared_segments(path: &str, template: &str) -> usize {
    let segments = path.split('/').skip(1).filter(|segment| !segment.is_empty());
    segments.zip(template.split('/').skip(1)).take_while(|(a, b)| a == b || b.starts_with('{')).count()
}
