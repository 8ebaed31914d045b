import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'

/** Color sequences, and the text of a line before "erase in line" (ECMA-48, SGR and EL). */
const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, 'g')
const ERASED = new RegExp(`[^\\n]*${String.fromCharCode(27)}\\[\\d*K`, 'g')
const TIME = '2026-11-20T09:15:02'
const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))
/** Shorter replacements would also be found in other words. */
const NAMED_LENGTH_MIN = 8

/**
 * Replaces what differs between runs: secrets, IDs, times, sizes. Equal values get equal
 * replacements within a page, so another run of the same programs changes nothing.
 */
export class FixedValues {
  readonly #known = new Map<string, string>()
  readonly #named = new Map<string, string>()
  #pseudonyms = 0

  /** Names the replacement of a value. */
  name(value: string, replacement: string): void {
    this.#known.set(value, replacement)
    this.#named.set(replacement, value)
  }

  /** Commands of a page with the values in place of the replacements that the page shows. */
  actual(commands: string): string {
    let text = commands
    for (const [replacement, value] of this.#named) text = text.replaceAll(replacement, value)
    return text
  }

  /** The output of commands as a page shows it. */
  text(output: string): string {
    // Progress is drawn on one line, which is erased at the end.
    const shown = output.replaceAll('\r', '').replace(ERASED, '').replace(COLORS, '')
    // The visible digits of a secret are printed before the secret.
    for (const [, digits = ''] of shown.matchAll(/svc_(?:pk|mt)_([0-9a-f]{8})/g)) this.#fixed(digits)
    return shown
      .split('\n')
      .map((line) => aligned(line, this.#line(line)))
      .join('\n')
      .trimEnd()
  }

  #line(text: string): string {
    return (
      text
        .replaceAll(REPOSITORY, '/home/alice/posture/')
        .replace(/(?<=\/setup#)([0-9a-f]{8})[0-9a-f]+/g, (_, digits) => `${this.#fixed(digits)}…`)
        .replace(/svc_(pk|mt)_([0-9a-f]{8})[0-9a-f]+/g, (_, kind, digits) => `svc_${kind}_${this.#fixed(digits)}…`)
        .replace(/whsec_[\w+/=]+/g, 'whsec_bXkgc2ln…')
        .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) => this.#fixedId(id))
        // Pseudonyms of clients and users.
        .replace(/(?<=\b[pu]-)[\w-]{27,}(?![\w-])/g, (digits) => this.#fixedPseudonym(digits))
        .replace(/(?<=sha256-key:)[0-9a-f]{64}/g, '4ba298…')
        // In a table, a pin has several lines.
        .replace(/(?<=sha256-key:)[0-9a-f]+(?= *│$)/, (part) => PIN_DIGITS.slice(0, part.length))
        .replace(/(?<=│ +)[0-9a-f]{17,63}(?= +│$)/, (part) => PIN_DIGITS.slice(-part.length))
        .replace(/\b[0-9a-f]{16}(?=[0-9a-f]{16}\b|\b)/g, (id) => this.#fixed(id))
        .replace(/(?<=^Id +)[0-9a-f]{8}$/, (digits) => this.#fixed(digits))
        .replace(/(?<=[\s"│])[0-9a-f]{8}(?=[\s"│]|$)/g, (digits) => this.#known.get(digits) ?? digits)
        .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)/g, (_, part, zone) =>
          part ? `${TIME}.123${zone}` : `${TIME}${zone}`,
        )
        .replace(/^\[\d\d:\d\d:\d\d\]/, '[09:15:02]')
        .replace(/(?<= \[)[\d.]+m?s(?=\]$)/, '512.4ms')
        // In two lines of a table.
        .replace(/(?<=before-restore-)\S+/, '2026-11-20T09-1')
        .replace(/(?<=^ +)\d-\d\d-\d{3}Z$/, '5-02-431Z')
        .replace(/(?<=until )\d{4}-\d\d-\d\d/, '2028-12-25')
        .replace(/\b(?:[0-9A-F]{2}:){31}[0-9A-F]{2}\b/g, '4B:A2:98:…')
        .replace(/\d+ MB(?= free|\s*│$)/g, '79101 MB')
        .replace(/(?<=eth0, )\d+ s$/, '22 s')
        .replace(/(?<="uptime_seconds":)\d+/, '22')
        .replace(/(?<=\.backup +(?:│ +\d+ +){3}│ )[\d.]+ */, (seconds) => '0.125'.padEnd(seconds.length))
        .replace(/(?<=│ )\d{6}(?= │)/g, '118832')
        // The received packets of an interface.
        .replace(/(?<=^│ \w+ +│ (?:up|down).*│ )\d+ *(?= │$)/, (count) => '42'.padEnd(count.length))
    )
  }

  /**
   * Commands of a page repeat its pseudonyms. Pseudonyms are counted alone, so that another ID in
   * an earlier output does not change them.
   */
  #fixedPseudonym(value: string): string {
    return this.#known.get(value) ?? this.#fixed(value, `pseudonym ${this.#pseudonyms++}`)
  }

  #fixed(value: string, name = `value ${this.#known.size}`): string {
    const known = this.#known.get(value)
    if (known !== undefined) return known
    const made = createHash('sha256').update(name).digest('hex').slice(0, value.length)
    this.#known.set(value, made)
    if (made.length >= NAMED_LENGTH_MIN) this.#named.set(made, value)
    return made
  }

  #fixedId(id: string): string {
    return id
      .split('-')
      .map((part, index) => (index === 0 || index > 2 ? this.#fixed(part) : part.replaceAll(/[0-9a-f]/g, '4')))
      .join('-')
  }
}

const PIN_DIGITS = '4ba298b7f7e3d08920f9b4ea1124bede8ddffdb59493acf1f85f2aab3730cae0'

/** Keeps the width of table cells. */
function aligned(original: string, changed: string): string {
  const cells = original.split('│')
  if (cells.length < 3) return changed
  return changed
    .split('│')
    .map((cell, index) => cell.padEnd(cells[index]?.length ?? 0))
    .join('│')
    .trimEnd()
}
