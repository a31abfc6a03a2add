use metering_core::chains::Address;

/// An address with the checksum that people compare (EIP-55).
pub(super) fn checksummed(address: &str) -> String {
    address.parse::<Address>().map_or_else(|_| address.to_owned(), |address| address.to_checksummed())
}
