import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/** The string literals in every logger call of the programs' sources, by file. */
export function logMessages(): { readonly file: string; readonly message: string }[] {
  return ['api', 'collector', 'console', 'engine'].flatMap(sourcesBelow).flatMap((file) => {
    const text = readFileSync(join(REPOSITORY, file), 'utf8')
    return [...text.matchAll(/\b(?:log(?:ger)?\??\.(?:debug|info|warn|error|fatal)|logFailure)\(/gi)].flatMap((call) =>
      literalsOf(text, call.index + call[0].length).map((message) => ({ file, message })),
    )
  })
}

function sourcesBelow(folder: string): string[] {
  const names = readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => /\.tsx?$/.test(name)).map((name) => join(folder, name))
}

/**
 * The identifiers of several words in the sources, each once per file, as words: `lookAtClock` and
 * `LOOK_AT_CLOCK` are "look at clock". Includes words with an underscore in strings, such as
 * metrics and log fields.
 */
export function identifiers(): { readonly file: string; readonly identifier: string; readonly words: string }[] {
  const folders = ['api', 'bench', 'collector', 'console', 'deploy', 'engine', 'registry', 'test']
  return folders.flatMap(sourcesBelow).flatMap((file) => {
    const code = readFileSync(join(REPOSITORY, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
    const found = new Set(code.match(/\b[A-Za-z]+(?:_\w+|[a-z][A-Z]\w*)/g))
    return Array.from(found, (identifier) => ({ file, identifier, words: wordsOf(identifier) }))
  })
}

/** `eventsFolded` and `events_folded` as "events folded". */
export function wordsOf(identifier: string): string {
  return identifier.replaceAll('_', ' ').replace(/([a-z0-9])([A-Z])/g, '$1 $2')
}

/**
 * The string literals and the texts between tags of the console's pages. Approximate: code between
 * two tags is taken for a text, too.
 */
export function pageTexts(): { readonly file: string; readonly text: string }[] {
  return sourcesBelow('console/pages').flatMap((file) => {
    const source = readFileSync(join(REPOSITORY, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
    const code = source.replace(/^(?:import|export) [^']*from '[^']*'$/gm, '')
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
