import { readFileSync } from 'node:fs'

/** What console/build.ts writes beside the compiled files: one password per line, in lower case. */
export const COMMON_PASSWORDS_FILE = new URL('../common-passwords.txt', import.meta.url)
/** Shorter ones are too short for a password, also with what people add to them. */
export const COMMON_PASSWORD_LENGTH_MIN = 5

/** Whether one of these words, in lower case, is on the list. */
export function isCommonPassword(words: readonly string[]): boolean {
  // Read for each new password, which is rare: the list would take 4 MB of memory.
  const list = readFileSync(COMMON_PASSWORDS_FILE, 'utf8')
  return words.some((word) => list.includes(`\n${word}\n`))
}
