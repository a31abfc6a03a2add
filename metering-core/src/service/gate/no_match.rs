//! Why a request matches no route, and the errors for that.

use std::sync::Arc;

use crate::catalogue::path::{RequestPath, TargetError};
use crate::catalogue::{ModelRefusal, RouteRefusal};
use crate::error::Error;
use crate::service::metering::Service;

/// Why a request matches no route.
#[derive(Debug)]
pub(super) enum NoMatch<'r> {
    Path(TargetError),
    Route(RequestPath<'r>, RouteRefusal),
}

impl NoMatch<'_> {
    /// The error for a caller with a live key.
    pub(super) fn into_error(self, service: &Service) -> Error {
        match self {
            Self::Path(error) => Error::InvalidPath(error),
            Self::Route(path, RouteRefusal::UnknownRoute) => {
                let nearest = service.catalogue().nearest_template(path.as_str()).map(Arc::from);
                Error::UnknownRoute { nearest, all: service.config.links.routes.clone() }
            }
            Self::Route(_, refusal) => refusal.into(),
        }
    }
}

impl From<ModelRefusal> for Error {
    fn from(refusal: ModelRefusal) -> Self {
        match refusal {
            ModelRefusal::Unread(fields) => Self::InvalidParameter(fields),
            ModelRefusal::Unsold(model) => Self::UnknownModel(model),
        }
    }
}

impl From<RouteRefusal> for Error {
    fn from(refusal: RouteRefusal) -> Self {
        match refusal {
            RouteRefusal::UnknownRoute => Self::UnknownRoute { nearest: None, all: None },
            RouteRefusal::AmbiguousPath => Self::InvalidPath(TargetError::ReadsLikeOtherRoute),
            RouteRefusal::EncodedSlash => Self::InvalidPath(TargetError::EncodedSeparator),
            RouteRefusal::MethodNotAllowed(methods) => Self::MethodNotAllowed(methods),
            RouteRefusal::InvalidParameters(fields) => Self::InvalidParameter(fields),
        }
    }
}
