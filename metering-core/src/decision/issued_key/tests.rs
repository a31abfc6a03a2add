//! Tables of the decisions on keys.
