/// Who sells the credits, for receipts.
///
/// ```
/// use metering_core::ServiceConfig;
/// use metering_core::payments::Seller;
///
/// let seller = Seller {
///     name: "Acme Data Ltd".to_owned(),
///     address: vec!["1 High Street".to_owned(), "London".to_owned()],
///     ..Seller::default()
/// };
/// let config = ServiceConfig { seller, ..ServiceConfig::default() };
/// assert_eq!(config.seller.tax_id, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seller {
    /// The name.
    pub name: String,
    /// The postal address, line by line.
    pub address: Vec<String>,
    /// The tax number, if any.
    pub tax_id: Option<String>,
    /// An email address or URL for questions, if any.
    pub contact: Option<String>,
}
