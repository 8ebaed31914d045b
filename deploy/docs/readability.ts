import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { markdownTable } from './markdown.ts'

/*
 * Prints words, sentences and the Flesch-Kincaid grade of Markdown pages:
 *
 *   node dist/deploy/docs/readability.js [FILE...]
 *
 * Without arguments, it reads the pages of this repository. The grade is that of the prose: code
 * blocks, tables, headings and generated parts count as words of the page, but not as sentences.
 */
const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))

export interface Readability {
  /** Words of the whole page, tables and code included. */
  readonly words: number
  /** Words and sentences of the prose. */
  readonly proseWords: number
  readonly sentences: number
  /** Mean number of words in a sentence. */
  readonly wordsPerSentence: number
  /**
   * Flesch-Kincaid grade (Kincaid et al. 1975): US school years needed to read the prose. NaN
   * without prose.
   */
  readonly grade: number
}

export function readability(page: string): Readability {
  const sentences = sentencesOf(page).map(wordsOf)
  const prose = sentences.flat()
  const syllables = prose.reduce((sum, word) => sum + syllablesOf(word), 0)
  return {
    words: pageWords(page),
    proseWords: prose.length,
    sentences: sentences.length,
    wordsPerSentence: prose.length / sentences.length,
    grade: (0.39 * prose.length) / sentences.length + (11.8 * syllables) / prose.length - 15.59,
  }
}

/** The words of a page: texts between spaces with a letter or a digit. Lines of tables are none. */
export function pageWords(page: string): number {
  return page.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

/**
 * The sentences of a Markdown page's prose, without markup. A sentence ends with its paragraph or
 * list item.
 */
export function sentencesOf(page: string): string[] {
  const prose = page
    .replace(/<!-- table [\s\S]*?<!-- end -->/g, '\n\n')
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^ *```[\s\S]*?^ *```/gm, '\n\n')
    .replace(/^(?: {4}|\t).*$/gm, '\n')
    .replace(/^ *(?:#|\|).*$/gm, '\n')
    .replace(/^ *(?:[-*]|\d+\.) /gm, '\n\n')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/`[^`]*`/g, 'code')
    .replace(/[*_]{1,2}(\S[^*_]*)[*_]{1,2}/g, '$1')
  return prose
    .split(/\n\s*\n/)
    .flatMap((paragraph) => paragraph.replace(/\s+/g, ' ').split(/(?<=[.!?])\s+(?=[^a-z]|code\b)/))
    .map((sentence) => sentence.trim())
    .filter((sentence) => /[A-Za-z]/.test(sentence))
}

function wordsOf(sentence: string): string[] {
  return sentence.match(/[A-Za-z][A-Za-z'-]*|\d[\d.,]*/g) ?? []
}

/** Groups of vowels, without a silent e at the end. */
function syllablesOf(word: string): number {
  const groups = word
    .toLowerCase()
    .replace(/(?<=[^aeiouyl])e$|(?<=[^td])ed$|(?<=[^scxz])es$/, '')
    .match(/[aeiouy]+/g)
  return Math.max(1, groups?.length ?? 1)
}

/** Paths of the documentation pages, from the root of the repository. */
export function pagePaths(): string[] {
  const pages = readdirSync(join(REPOSITORY, 'docs'), { recursive: true, encoding: 'utf8' })
  return [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...pages
      .filter((page) => page.endsWith('.md'))
      .map((page) => join('docs', page))
      .sort(),
  ]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const given = process.argv.slice(2)
  const files = given.length > 0 ? given : pagePaths().map((page) => join(REPOSITORY, page))
  const rows = files.map((file) => {
    const { words, sentences, wordsPerSentence, grade } = readability(readFileSync(file, 'utf8'))
    return [relative('.', file), words, sentences, wordsPerSentence.toFixed(1), grade.toFixed(1)]
  })
  process.stdout.write(`${markdownTable(['Page', 'Words', 'Sentences', 'Words a sentence', 'Grade'], rows)}\n`)
}
