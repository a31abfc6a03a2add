//! Where one WebSocket frame ends and the next begins, so that a Close frame can be put between two of them.
//!
//! The gateway ignores the content of frames: messages, compression and control frames pass unchanged.

/// The longest header of a frame (RFC 6455, section 5.2): two bytes, eight of length, four of the mask.
const MAX_HEADER_BYTES: usize = 14;
/// The opcode of a Close frame.
const CLOSE: u8 = 0x8;
/// Set in the first byte of the last frame of a message, as control frames are.
const FINAL: u8 = 0x80;
/// Set in the second byte when there is a mask.
const MASKED: u8 = 0x80;

/// Follows the frames of one direction.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; MAX_HEADER_BYTES],
    /// How much of the header was seen.
    header_bytes: usize,
    /// The rest of the payload, once the header is complete.
    payload_bytes: u64,
    /// Whether a Close frame began.
    closed: bool,
}

impl Frames {
    /// Follows bytes that were sent.
    pub(super) fn sent(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = self.until_step(bytes.len());
            let (step, rest) = bytes.split_at(count);
            self.step(step);
            bytes = rest;
        }
    }

    /// Whether a frame may begin here.
    pub(super) fn is_between_frames(&self) -> bool {
        self.header_bytes == 0 && self.payload_bytes == 0
    }

    /// Whether a Close frame was sent: no other frame may follow it.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many of these bytes belong to the current frame: all of them if it does not end in them.
    pub(super) fn rest_of_frame(&self, bytes: &[u8]) -> usize {
        let mut ahead = Self { header: self.header, ..*self };
        let mut count = 0;
        while count < bytes.len() && !ahead.is_between_frames() {
            let step = ahead.until_step(bytes.len() - count);
            ahead.step(&bytes[count..count + step]);
            count += step;
        }
        count
    }

    /// How many of `available` bytes to read at once: payload, or one byte of a header.
    fn until_step(&self, available: usize) -> usize {
        if self.payload_bytes == 0 {
            1
        } else {
            available.min(usize::try_from(self.payload_bytes).unwrap_or(usize::MAX))
        }
    }

    fn step(&mut self, bytes: &[u8]) {
        if self.payload_bytes > 0 {
            self.payload_bytes -= u64::try_from(bytes.len()).unwrap_or(self.payload_bytes);
            return;
        }
        let [byte] = bytes else { return };
        self.header[self.header_bytes] = *byte;
        self.header_bytes += 1;
        if self.header_bytes == self.header_length() {
            self.closed |= self.header[0] & 0x0f == CLOSE;
            self.payload_bytes = self.length();
            self.header_bytes = 0;
        }
    }

    /// The length of the header as known so far: at least the bytes that determine it.
    fn header_length(&self) -> usize {
        if self.header_bytes < 2 {
            return 2;
        }
        let mask = if self.header[1] & MASKED == 0 { 0 } else { 4 };
        mask + match self.header[1] & !MASKED {
            126 => 4,
            127 => 10,
            _ => 2,
        }
    }

    /// The length of the payload, from a complete header.
    fn length(&self) -> u64 {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        match self.header[1] & !MASKED {
            126 => number(&self.header[2..4]),
            127 => number(&self.header[2..10]),
            short => u64::from(short),
        }
    }
}

/// A Close frame from a server, with a status code (RFC 6455, section 7.4) and a reason of at most 123 bytes.
pub(super) fn close_frame(code: u16, reason: &str) -> Vec<u8> {
    const MAX_REASON_BYTES: usize = 123;
    let reason = &reason[..reason.floor_char_boundary(MAX_REASON_BYTES)];
    let length = u8::try_from(2 + reason.len()).unwrap_or_default();
    let mut frame = vec![FINAL | CLOSE, length];
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(reason.as_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a payload of this length.
    fn frame(opcode: u8, length: usize, masked: bool) -> Vec<u8> {
        let mask = if masked { MASKED } else { 0 };
        let mut frame = vec![FINAL | opcode];
        match length {
            0..=125 => frame.push(mask | u8::try_from(length).unwrap()),
            126..=65_535 => {
                frame.push(mask | 126);
                frame.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend_from_slice(&u64::try_from(length).unwrap().to_be_bytes());
            }
        }
        // Bytes that would be headers if they were read as such.
        frame.resize(frame.len() + if masked { 4 } else { 0 } + length, FINAL | CLOSE);
        frame
    }

    #[test]
    fn boundaries_are_found_however_the_bytes_arrive() {
        for masked in [false, true] {
            let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];
            let frames: Vec<_> = lengths.iter().map(|length| frame(0x2, *length, masked)).collect();
            let ends: Vec<_> =
                frames.iter().scan(0, |end, frame| Some(*end + frame.len()).inspect(|next| *end = *next)).collect();
            let all = frames.concat();
            for piece in [1, 3, 7, 4_096, all.len()] {
                let (mut tracker, mut sent) = (Frames::default(), 0);
                for bytes in all.chunks(piece) {
                    tracker.sent(bytes);
                    sent += bytes.len();
                    assert_eq!(tracker.is_between_frames(), ends.contains(&sent), "{sent} in pieces of {piece}");
                }
                assert!(!tracker.is_closed(), "payloads are not headers");
            }
        }
    }

    #[test]
    fn rest_of_a_frame_that_has_begun_is_told_from_the_next() {
        let (first, second) = (frame(0x1, 300, false), frame(0x1, 5, false));
        let both = [first.clone(), second].concat();
        for begun in 1..first.len() {
            let mut tracker = Frames::default();
            tracker.sent(&both[..begun]);
            assert_eq!(tracker.rest_of_frame(&both[begun..]), first.len() - begun, "{begun}");
            assert_eq!(tracker.rest_of_frame(&first[begun..first.len() - 1]), first.len() - begun - 1, "{begun}");
        }
        assert_eq!(Frames::default().rest_of_frame(&both), 0);
    }

    #[test]
    fn close_frames_are_noticed_and_made() {
        let mut tracker = Frames::default();
        tracker.sent(&frame(0x1, 3, false));
        assert!(!tracker.is_closed());
        tracker.sent(&frame(CLOSE, 2, false));
        assert!(tracker.is_closed());
        assert_eq!(close_frame(1001, "bye"), [0x88, 5, 0x03, 0xe9, b'b', b'y', b'e']);
        assert_eq!(close_frame(1008, &"ü".repeat(200)).len(), 2 + 2 + 122);
    }
}
