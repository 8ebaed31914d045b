import { FRAMING_FAULTS, type FramingFault } from './counted.ts'

/** What is wrong with a sender's octet counts, and what to change. */
export const FRAMING_REMARKS: Readonly<Record<FramingFault, string>> = {
  oneTooLarge: 'octet counts are one too large (corrected): count only bytes that are sent, such as a line end',
  tooLarge: 'octet counts are a few bytes too large (corrected): count only bytes that are sent, such as a line end',
  oneTooSmall: 'octet counts are one too small (corrected): count every byte after the blank',
  tooSmall: 'octet counts are a few bytes too small (corrected): count every byte after the blank',
  countsItself: 'octet counts include the count itself (corrected): count only the bytes after the blank',
  characters: 'octet counts are numbers of characters (corrected): count the bytes of the encoded message',
  lineEnd:
    'octet counts are wrong (line ends were used): count the bytes after the blank, or send lines without counts',
  noCount: 'some messages of a connection have no octet count: use one framing for all of them',
  lost: 'messages are lost because octet counts are wrong: count the bytes after the blank, or send lines without counts',
}

/** @param framing messages by fault, as sources count them */
export function framingRemark(framing: Readonly<Record<string, number>> | undefined): string {
  return FRAMING_FAULTS.filter((fault) => (framing?.[fault] ?? 0) > 0)
    .map((fault) => `${framing?.[fault]} times: ${FRAMING_REMARKS[fault]}`)
    .join('; ')
}
