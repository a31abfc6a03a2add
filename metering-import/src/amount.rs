//! Amounts that another service keeps as floating point (`REAL`), read exactly.
//!
//! A finite double is a whole number times a power of two, so it converts to atoms in integer arithmetic: no float is
//! added, multiplied or formatted here.

use metering_core::money::{ATOMS_PER_CREDIT, Credits};

/// Bits of the fraction that a remainder is kept to.
const REMAINDER_BITS: u32 = 32;

/// A number of credits that was stored as a double.
///
/// ```
/// use metering_import::Real;
///
/// let amount = Real::from_bits(0.1_f64.to_bits())?;
/// assert_eq!(amount.credits.to_string(), "0.1");
/// # Ok::<(), metering_import::RealError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Real {
    /// The nearest whole number of atoms, half-even.
    pub credits: Credits,
    /// How many atoms lie between this double and its neighbour, rounded up: sums of such doubles drift by that much.
    pub step: i64,
    /// The rounding error in 2^-32 atoms: exact amount minus `credits`.
    pub remainder: i64,
}

/// Why a double is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RealError {
    /// It is not a number, or infinite.
    #[error("is not a finite number")]
    NotFinite,
    /// It is larger than a balance can be.
    #[error("is outside the range of amounts, about 1.28 billion credits")]
    OutOfRange,
}

impl Real {
    /// Reads a double from its bits (IEEE 754, binary64).
    ///
    /// # Errors
    /// When it is not finite, or out of range.
    pub fn from_bits(bits: u64) -> Result<Self, RealError> {
        let exponent_bits = (bits >> 52) & 0x7ff;
        let fraction = i128::from(bits & ((1 << 52) - 1));
        let (mantissa, exponent) = match exponent_bits {
            0x7ff => return Err(RealError::NotFinite),
            0 => (fraction, -1074),
            biased => (fraction | (1 << 52), i64::try_from(biased).unwrap_or(0) - 1075),
        };
        // Below 2^86.
        let scaled = mantissa * i128::from(ATOMS_PER_CREDIT);
        let (atoms, remainder) = if exponent >= 0 {
            let shift = u32::try_from(exponent).map_err(|_| RealError::OutOfRange)?;
            if mantissa != 0 && shift > 40 {
                return Err(RealError::OutOfRange);
            }
            (scaled << shift.min(40), 0)
        } else {
            round(scaled, exponent.unsigned_abs())
        };
        let negative = bits >> 63 == 1;
        let atoms = i64::try_from(atoms).map_err(|_| RealError::OutOfRange)?;
        let (atoms, remainder) = if negative { (-atoms, -remainder) } else { (atoms, remainder) };
        let step = match exponent {
            0.. => ATOMS_PER_CREDIT,
            _ => (ATOMS_PER_CREDIT >> exponent.unsigned_abs().min(63)) + 1,
        };
        Ok(Self { credits: Credits::from_atoms(atoms), step, remainder })
    }

    /// Whole atoms of a sum of remainders, half-even.
    #[must_use]
    pub fn atoms_of_remainders(sum: i128) -> i128 {
        let (atoms, _) = round(sum.abs(), u64::from(REMAINDER_BITS));
        if sum < 0 { -atoms } else { atoms }
    }
}

/// `value / 2^shift` for a value of zero or more below 2^95, half-even, and the remainder in 2^-32.
fn round(value: i128, shift: u64) -> (i128, i64) {
    let Some(shift) = u32::try_from(shift).ok().filter(|shift| *shift < 120) else { return (0, 0) };
    let whole = value >> shift;
    let rest = value - (whole << shift);
    let half = if shift == 0 { 1 } else { 1 << (shift - 1) };
    let up = rest > half || (rest == half && shift > 0 && whole & 1 == 1);
    // 32 bits of the rest, rounded down.
    let kept =
        if shift >= REMAINDER_BITS { rest >> (shift - REMAINDER_BITS) } else { rest << (REMAINDER_BITS - shift) };
    let kept = i64::try_from(kept).unwrap_or(0);
    if up { (whole + 1, kept - (1 << REMAINDER_BITS)) } else { (whole, kept) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    fn real(value: f64) -> Result<Real, RealError> {
        Real::from_bits(value.to_bits())
    }

    #[test]
    fn doubles_become_the_nearest_atoms() {
        // value, atoms, whether something was rounded
        let table = [
            (0.0, 0, false),
            (-0.0, 0, false),
            (1.0, 7_200_000_000, false),
            (-2.5, -18_000_000_000, false),
            (0.1, 720_000_000, true),
            (0.3, 2_160_000_000, true),
            (1.0 / 7200.0, 1_000_000, true),
            (1e-300, 0, false),
            (f64::MIN_POSITIVE / 2.0, 0, false),
            (1e9, 7_200_000_000_000_000_000, false),
            (0.5f64.powi(26), 107, true),
        ];
        for (value, atoms, rounded) in table {
            let real = real(value).unwrap();
            assert_eq!((real.credits.atoms(), real.remainder != 0), (atoms, rounded), "{value}");
        }
    }

    #[test]
    fn halves_go_to_the_even_atom() {
        // 7_200_000_000 = 2^11 * 3515625, so n * 2^-12 credits are n * 1757812.5 atoms.
        for (numerator, atoms) in [(1.0, 1_757_812), (3.0, 5_273_438), (5.0, 8_789_062), (-1.0, -1_757_812)] {
            let found = real(numerator / 4096.0).unwrap();
            assert_eq!(found.credits.atoms(), atoms, "{numerator}");
            assert_eq!(found.remainder.abs(), 1 << 31, "{numerator}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(real(value), Err(RealError::NotFinite));
        }
        for value in [2e9, -2e9, 1e300, f64::MAX] {
            assert_eq!(real(value), Err(RealError::OutOfRange), "{value}");
        }
    }

    #[test]
    fn remainders_add_up_half_even() {
        let half = 1i128 << 31;
        for (sum, atoms) in [(half, 0), (3 * half, 2), (-half, 0), (-3 * half, -2), (half + 1, 1), (0, 0)] {
            assert_eq!(Real::atoms_of_remainders(sum), atoms, "{sum}");
        }
    }

    proptest! {
        #[test]
        fn decimal_arithmetic_agrees(value in -1_000_000.0..1_000_000.0f64) {
            let exact = Decimal::from_f64_retain(value).unwrap() * Decimal::from(ATOMS_PER_CREDIT);
            let found = real(value).unwrap();
            // `from_f64_retain` keeps 28 digits: agrees to within rounding of the last one.
            let difference = (exact - Decimal::from(found.credits.atoms())).abs();
            prop_assert!(difference <= Decimal::new(5001, 4), "{value}: {difference}");
        }
    }
}
