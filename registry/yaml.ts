import { createRequire } from 'node:module'
import type { CST, Document, LineCounter } from 'yaml'

type Yaml = typeof import('yaml')

const require = createRequire(import.meta.url)
/** Levels of nesting. A registry file has 6. */
const DEPTH_MAX = 32
/** Keys of one map. A platform has at most 20. */
const KEYS_MAX = 100
/**
 * Tokens of a text from a member of an organization, and lines and escapes. A framework of 1,200
 * items has 150,000 tokens.
 */
export const YAML_TOKENS_MAX = 200_000

/** What is wrong with a text, and its line, from 1, if a part of the text is wrong. */
export interface YamlProblem {
  readonly problem: string
  readonly line?: number
}

/** A text that is not YAML, or exceeds a limit. */
export class YamlError extends Error {
  override readonly name = 'YamlError'
  readonly problems: readonly YamlProblem[]

  constructor(problems: readonly YamlProblem[]) {
    const [first] = problems
    super(first?.line === undefined ? first?.problem : `${first.problem} at line ${first.line}`)
    this.problems = problems
  }

  /** One line of text for each problem, such as `line 2: not YAML: Map keys must be unique`. */
  get lines(): readonly string[] {
    return this.problems.map(({ problem, line }) => (line === undefined ? problem : `line ${line}: ${problem}`))
  }
}

export interface YamlLimits {
  readonly tokensMax?: number
  /** Aliases can make a small text a large value. The limit counts the values that they add. */
  readonly aliasesMax?: number
}

/** The value of a YAML text, and the lines of its parts. */
export class YamlText {
  readonly value: unknown
  readonly #document: Document
  readonly #lines: LineCounter

  constructor(value: unknown, document: Document, lines: LineCounter) {
    this.value = value
    this.#document = document
    this.#lines = lines
  }

  /**
   * The line, from 1, of the part at this path, or of the nearest part around it: a missing field
   * has no line of its own. undefined: nothing on the path exists.
   */
  lineOf(path: readonly PropertyKey[]): number | undefined {
    for (let length = path.length; length > 0; length--) {
      const node = this.#document.getIn(path.slice(0, length), true) as
        | { readonly range?: readonly number[] }
        | undefined
      const start = node?.range?.[0]
      if (start !== undefined) return this.#lines.linePos(start).line
    }
    return undefined
  }
}

/** Loaded when it is used, because few operators have a file in YAML, and loading takes 16 ms. */
function library(): Yaml {
  return require('yaml') as Yaml
}

export function writeYaml(value: unknown): string {
  return library().stringify(value)
}

/**
 * Reads YAML 1.2, in time and memory linear in its length, whatever the text is. The only caller of
 * the parser: a text that reaches it unchecked can end the process.
 *
 * @throws YamlError
 */
export function readYaml(text: string, { tokensMax = YAML_TOKENS_MAX, aliasesMax = 0 }: YamlLimits = {}): YamlText {
  const yaml = library()
  checkShape(yaml, text, tokensMax)
  const lines = new yaml.LineCounter()
  const document = parse(yaml, text, lines)
  const problems = document.errors.map(({ pos, message }) => {
    return { problem: `not YAML: ${message}`, line: lines.linePos(pos[0]).line }
  })
  if (problems.length > 0) throw new YamlError(problems)
  try {
    return new YamlText(document.toJS({ maxAliasCount: aliasesMax }), document, lines)
  } catch (error) {
    throw new YamlError([{ problem: `not usable YAML: ${(error as Error).message}` }])
  }
}

function parse(yaml: Yaml, text: string, lineCounter: LineCounter): Document {
  const { stackTraceLimit } = Error
  // A text can have an error for each character, and each would capture a stack.
  Error.stackTraceLimit = 0
  try {
    // Pretty errors would copy a part of the text for each of these errors.
    // Warnings would be printed, with parts of the text.
    return yaml.parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' })
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/**
 * Checks the shape by the parser's first stage, which keeps a stack of its own and is linear. The
 * second stage calls itself for each level, and V8 ends the process if a regular expression is
 * compiled where no stack is left. It also compares each key of a map with all others of the map:
 * 12,000 keys would take seconds.
 */
function checkShape({ Lexer, Parser }: Yaml, text: string, tokensMax: number): void {
  const parser = new Parser()
  const refuse = (what: string): never => {
    throw new YamlError([{ problem: `more than ${what}`, line: text.slice(0, parser.offset).split('\n').length }])
  }
  // Within one token, the parser makes an object for each line, and for each wrong escape.
  for (const [what, character] of [
    ['lines', '\n'],
    ['escapes', '\\'],
  ] as const) {
    let count = 0
    for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) {
      if (++count > tokensMax) throw new YamlError([{ problem: `more than ${tokensMax} ${what}` }])
    }
  }
  let tokens = 0
  for (const lexeme of new Lexer().lex(text)) {
    if (++tokens > tokensMax) refuse(`${tokensMax} tokens`)
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > DEPTH_MAX) refuse(`${DEPTH_MAX} levels of nesting`)
    if (parser.stack.some((token) => keysOf(token) > KEYS_MAX)) refuse(`${KEYS_MAX} keys in one map`)
  }
}

/** The keys of a map that were read so far. */
function keysOf(token: CST.Token): number {
  const isMap = token.type === 'block-map' || (token.type === 'flow-collection' && token.start.source === '{')
  return isMap ? token.items.length : 0
}
