import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import t from 'tap'
import { pageText } from '../../../deploy/docs/main.ts'
import { commandName, commandsOf, pagePaths, programs } from '../../../deploy/docs/references.ts'
import { REPOSITORY } from '../../support/programs.ts'

/**
 * Words that users read, and what to write instead: the field's standard terms, and American
 * spelling.
 */
const AVOIDED: readonly (readonly [pattern: RegExp, use: string])[] = [
  [
    /\b(?:stands?|stood|lies|lay) (?:in|on|at|ready|beside|above|below|before|over|there|here)\b/,
    'is in, is stored in',
  ],
  [/\banew\b|\bbesides\b|\bfor ever\b/, 'again; also; permanently'],
  [/\bparted\b/, 'comma-separated'],
  [/\b(?:tells?|telling|told)\b/, 'report, notify'],
  [/\blook-ups?\b/, 'lookup'],
  [/\bstrangers?\b/, 'unauthenticated sender'],
  [/\bturn(?:ed|s)? away\b/, 'rejected'],
  [/\bcuts?\b|\bcutting\b/, 'truncated, aborted'],
  [/\btroubles?\b/, 'error, problem'],
  [/\bmend(?:s|ed|ing)?\b/, 'fix'],
  [/\bshall\b/, 'will, must'],
  [/\bdata (?:are|were|have)\b/, 'data is'],
  [/\b(?:whoever|wherefore|thereby|wherein|thereof|likewise)\b/, 'a plain sentence'],
  [/\b(?:any|every)body\b/, 'anyone'],
  [/\b(?:author|recogn|normal|initial|organ|minim|maxim|summar|anal|synchron)(?:is|ys)(?:e[ds]?|ing|ation)\b/, '-ize'],
  [/\b(?:colour|behaviour|honour|favour|neighbour)\w*\b/, '-or'],
  [/\b(?:licences?|centres?|grey|whilst|catalogues?|cancelled|labelled|judgement)\b/, 'American spelling'],
]

/** The avoided words in a text, each with what to write. `where` identifies the text. */
function avoidedWords(where: string, text: string): string[] {
  const checked = text.replace(/`[^`\n]*`/g, '').replace(/\s+/g, ' ')
  return AVOIDED.flatMap(([pattern, use]) =>
    [...checked.matchAll(new RegExp(pattern, 'gi'))].map((found) => {
      const context = checked.slice(Math.max(0, found.index - 30), found.index + found[0].length + 30)
      return `${where}: "${found[0]}" in "${context}": write ${use}`
    }),
  )
}

/** The texts of a command and its options, as --help shows them. */
function helpTexts(command: Command): string[] {
  return [command.description(), command.summary(), ...command.options.map(({ description }) => description)]
}

/** The strings of the sources with a space: messages, and texts of the console. */
function messages(): { readonly file: string; readonly text: string }[] {
  const files = ['api', 'collector', 'console', 'engine'].flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  return files
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) => {
      const code = readFileSync(join(REPOSITORY, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
      return [
        ...code.matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n])* (?:\\.|(?!\1)[^\\\n])*)\1|>([^<>{}=;()]* [^<>{}=;()]*)</g),
      ].map(([, , literal, between = '']) => ({ file, text: literal ?? between }))
    })
}

t.test('pages, help and messages use standard terms', async (t) => {
  t.same(
    pagePaths().flatMap((page) => avoidedWords(page, pageText(page))),
    [],
  )
  const commands = (await programs()).flatMap(commandsOf)
  t.same(
    commands.flatMap((command) => helpTexts(command).flatMap((text) => avoidedWords(commandName(command), text))),
    [],
  )
  const texts = messages()
  t.ok(texts.some(({ text }) => text.includes('SALES_EMAIL is not set')))
  t.same(
    texts.flatMap(({ file, text }) => avoidedWords(file, text)),
    [],
  )
})
