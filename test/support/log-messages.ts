import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

const FOLDERS = ['api', 'bench', 'collector', 'console', 'deploy', 'dry-run', 'engine', 'registry', 'test']

export interface SourceText {
  readonly file: string
  readonly text: string
}

/** The string literals in every logger call and every Fault of the programs' sources. */
export function messages(): SourceText[] {
  return ['api', 'collector', 'console', 'engine'].flatMap((folder) =>
    literalsInCalls(folder, /\b(?:log(?:ger)?\??\.(?:debug|info|warn|error|fatal)|logFailure|new Fault)\(/gi),
  )
}

/** The titles of tests. */
export function testTitles(): SourceText[] {
  return sourcesBelow('test').flatMap((file) =>
    [...readSource(file).matchAll(/\bt\.test\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)].map(([, , text = '']) => ({
      file,
      text,
    })),
  )
}

/** The comments of all sources. */
export function comments(): SourceText[] {
  return FOLDERS.flatMap(sourcesBelow).flatMap((file) =>
    [...readSource(file).matchAll(COMMENT)].map(([comment]) => ({
      file,
      text: comment.replace(/^\s*(?:\/\*\*?|\*\/?|\/\/)/gm, ''),
    })),
  )
}

/** A block comment, or a line that consists of a comment. */
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm

function readSource(file: string): string {
  return readFileSync(join(REPOSITORY, file), 'utf8')
}

function literalsInCalls(folder: string, calls: RegExp): SourceText[] {
  return sourcesBelow(folder).flatMap((file) => {
    const source = readSource(file)
    return [...source.matchAll(calls)].flatMap((call) =>
      literalsOf(source, call.index + call[0].length).map((text) => ({ file, text })),
    )
  })
}

function sourcesBelow(folder: string): string[] {
  const names = readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => /\.tsx?$/.test(name)).map((name) => join(folder, name))
}

/**
 * The identifiers of several words in the sources, each once per file, as words: `lookAtClock` and
 * `LOOK_AT_CLOCK` are `look at clock`. Includes words with an underscore in strings, such as
 * metrics and log fields.
 */
export function identifiers(): { readonly file: string; readonly identifier: string; readonly words: string }[] {
  return FOLDERS.flatMap(sourcesBelow).flatMap((file) => {
    const code = readSource(file).replace(COMMENT, '')
    const found = new Set(code.match(/\b[A-Za-z]+(?:_\w+|[a-z][A-Z]\w*)/g))
    return Array.from(found, (identifier) => ({ file, identifier, words: wordsOf(identifier) }))
  })
}

/** `eventsFolded` and `events_folded` as `events folded`. */
export function wordsOf(identifier: string): string {
  return identifier.replaceAll('_', ' ').replace(/([a-z0-9])([A-Z])/g, '$1 $2')
}

/**
 * The string literals and the texts between tags of the console's pages. Approximate: code between
 * two tags is taken for a text, too.
 */
export function pageTexts(): SourceText[] {
  return sourcesBelow('console/pages').flatMap((file) => {
    const code = readSource(file)
      .replace(COMMENT, '')
      .replace(/^(?:import|export) [^']*from '[^']*'$/gm, '')
    const literals = [...code.matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n])*)\1/g)].map((found) => found[2] ?? '')
    const between = [...code.matchAll(/>([^<>{}=;()]+)[<{]/g)].map((found) => found[1] ?? '')
    return [...literals, ...between].map((text) => ({ file, text }))
  })
}

/** The string literals from `start` to the closing parenthesis of the call. */
function literalsOf(text: string, start: number): string[] {
  const literals: string[] = []
  const token = /(['"`])((?:\\.|(?!\1)[^\\])*)\1|[()]/gs
  token.lastIndex = start
  let depth = 1
  for (let found = token.exec(text); found !== null && depth > 0; found = token.exec(text)) {
    const [whole, , literal] = found
    if (literal !== undefined) literals.push(literal)
    else depth += whole === '(' ? 1 : -1
  }
  return literals
}
