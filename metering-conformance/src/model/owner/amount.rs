use metering_core::money::Credits;

pub(super) fn fits(atoms: i128) -> bool {
    i64::try_from(atoms).is_ok()
}

/// Converts atoms that are known to be in range.
pub(crate) fn credits(atoms: i128) -> Credits {
    Credits::from_atoms(i64::try_from(atoms).expect("the model accepts only amounts in range"))
}
