import { CR, EQUALS, HASH, LF, OPEN_BRACE, OPEN_BRACKET, PIPE, QUOTE, SPACE } from './bytes.ts'
import { FORMATS } from './formats.ts'
import { ANY_MARKS, CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'

export const NO_FORMAT = -1

/**
 * Recognizes and reads messages of all formats. The last format of the source is tried first, but
 * only with its own cue, so a source may change or mix formats.
 */
export class FormatDetector {
  /** The index in FORMATS of the last message's format, or NO_FORMAT. */
  format = NO_FORMAT

  read(line: LogLine, start: number, end: number): Verdict {
    line.reset()
    start = textStart(line.view, start, end)
    end = textEnd(line.view, start, end)
    const { memory, view } = line
    line.marks = ANY_MARKS
    const before = FORMATS[memory.format]
    // A format without JSON could find its own line in that of a forwarder.
    if (before !== undefined && (before.isJson === true || start === end || view.getUint8(start) !== OPEN_BRACE)) {
      const verdict = readAsBefore(before, line, start, end)
      if (verdict !== Verdict.unknown) {
        this.format = memory.format
        return verdict
      }
      line.reset()
    }
    line.marks = marksOf(line.view, start, Math.min(end, start + CUE_BYTES))
    for (let index = 0; index < FORMATS.length; index++) {
      const format = FORMATS[index]
      if (format === undefined || !format.detect(line, start, end)) continue
      const verdict = format.parse(line, start, end)
      if (verdict === Verdict.unknown) {
        line.reset()
        continue
      }
      memory.format = index
      this.format = index
      return verdict
    }
    this.format = NO_FORMAT
    return Verdict.unknown
  }

  /** Takes the user and the byte counts of the event that was read last. */
  takeUserAndBytes(line: LogLine): void {
    FORMATS[this.format]?.takeUserAndBytes?.(line)
  }
}

/** Reads a message by the format of its source's last one, if it has that format's cue. */
function readAsBefore(format: LogFormat, line: LogLine, start: number, end: number): Verdict {
  if (format.continues !== undefined) return format.continues(line, start, end)
  return format.detect(line, start, end) ? format.parse(line, start, end) : Verdict.unknown
}

/** The offset after a UTF-8 byte order mark and blanks, where cues are searched. */
function textStart(view: DataView, start: number, end: number): number {
  if (end - start >= 3 && view.getUint8(start) === 0xef && view.getUint16(start + 1) === 0xbbbf) start += 3
  while (start < end && view.getUint8(start) === SPACE) start++
  return start
}

/** The end without the line ends and NULs that senders append, whatever their framing. */
function textEnd(view: DataView, start: number, end: number): number {
  while (end > start) {
    const byte = view.getUint8(end - 1)
    if (byte !== LF && byte !== CR && byte !== 0) break
    end--
  }
  return end
}

/** The bit in Mark of each byte. */
const MARKS = new Uint8Array(256)
MARKS[PIPE] = Mark.pipe
MARKS[HASH] = Mark.hash
MARKS[OPEN_BRACKET] = Mark.bracket
MARKS[QUOTE] = Mark.quote
MARKS[EQUALS] = Mark.equals

/** One pass over the bytes, so that formats whose mark is missing need no search of their own. */
function marksOf(view: DataView, start: number, end: number): number {
  let marks = 0
  for (let at = start; at < end; at++) marks |= MARKS[view.getUint8(at)] ?? 0
  return marks
}
