/** Fields that many answers have, put together once: names and values in turn, none of them from outside. */
export class FieldBlock {
  readonly fields: readonly string[]
  readonly firstName: string
  /** What stands behind the first name and its colon in an answer (RFC 9112 §5), without the last line's end. */
  readonly rest: string

  /** @throws RangeError where a name or value would end its line. */
  constructor(fields: readonly string[]) {
    const [name, value, ...others] = fields
    if (name === undefined || value === undefined) throw new RangeError('a block of no field')
    this.fields = fields
    this.firstName = ofOneLine(name)
    this.rest = ofOneLine(value) + fieldLines(others)
  }
}

/** Lines of fields, names and values in turn, each behind the end of the line before. @throws RangeError where a name or value would end its line. */
function fieldLines(fields: readonly string[]): string {
  let text = ''
  for (let at = 0; at + 1 < fields.length; at += 2) {
    text += `\r\n${ofOneLine(fields[at] ?? '')}: ${ofOneLine(fields[at + 1] ?? '')}`
  }
  return text
}

function ofOneLine(text: string): string {
  if (text.includes('\n') || text.includes('\r')) throw new RangeError(`a field of two lines: ${JSON.stringify(text)}`)
  return text
}

/** The fields of an answer as one: the library writes a colon behind the name, and what follows as it is. */
export interface FieldLines {
  readonly firstName: string
  readonly rest: string
}

const NO_LINES: FieldLines = { firstName: '', rest: '' }

/** @throws RangeError where a name or value would end its line. */
export function linesOf(fields: readonly string[], block: FieldBlock | undefined): FieldLines {
  if (block === undefined) return fields.length === 0 ? NO_LINES : new FieldBlock(fields)
  return fields.length === 0 ? block : { firstName: block.firstName, rest: block.rest + fieldLines(fields) }
}

/** The library writes that field itself where it closes. */
export function withoutConnection(fields: readonly string[]): string[] {
  const at = fields.indexOf('connection')
  return fields.filter((_, each) => each !== at && each !== at + 1)
}
