/**
 * Fields that many responses share, serialized once. Names and values alternate. None of them comes
 * from outside.
 */
export class FieldBlock {
  readonly fields: readonly string[]
  readonly firstName: string
  /**
   * The serialized fields after the first name and its colon (RFC 9112 §5), without the last line
   * end.
   */
  readonly rest: string

  /** @throws RangeError if a name or value contains a line end */
  constructor(fields: readonly string[]) {
    const [name, value, ...others] = fields
    if (name === undefined || value === undefined) throw new RangeError('a field block needs at least one field')
    this.fields = fields
    this.firstName = ofOneLine(name)
    this.rest = ofOneLine(value) + fieldLines(others)
  }
}

/**
 * Serializes fields, each after the line end of the previous one. @throws RangeError if a name or
 * value contains a line end.
 */
function fieldLines(fields: readonly string[]): string {
  let text = ''
  for (let at = 0; at + 1 < fields.length; at += 2) {
    text += `\r\n${ofOneLine(fields[at] ?? '')}: ${ofOneLine(fields[at + 1] ?? '')}`
  }
  return text
}

function ofOneLine(text: string): string {
  if (text.includes('\n') || text.includes('\r'))
    throw new RangeError(`a field contains a line end: ${JSON.stringify(text)}`)
  return text
}

/** All fields of a response as one field: the library writes the first name, a colon and `rest`. */
export interface FieldLines {
  readonly firstName: string
  readonly rest: string
}

const NO_LINES: FieldLines = { firstName: '', rest: '' }

/** @throws RangeError if a name or value contains a line end */
export function linesOf(fields: readonly string[], block: FieldBlock | undefined): FieldLines {
  if (block === undefined) return fields.length === 0 ? NO_LINES : new FieldBlock(fields)
  return fields.length === 0 ? block : { firstName: block.firstName, rest: block.rest + fieldLines(fields) }
}

/** The library writes this field itself when it closes the connection. */
export function withoutConnection(fields: readonly string[]): string[] {
  const at = fields.indexOf('connection')
  return fields.filter((_, each) => each !== at && each !== at + 1)
}
