import { readFileSync } from 'node:fs'

/**
 * Written by console/build.ts into the folder of the compiled files: one password per line, in
 * lower case.
 */
export const COMMON_PASSWORDS_FILE = new URL('../common-passwords.txt', import.meta.url)
/**
 * Minimum length of the listed passwords. Shorter ones make too short passwords, even with a common
 * suffix.
 */
export const COMMON_PASSWORD_LENGTH_MIN = 5

/** Whether the list contains one of these words, which must be in lower case. */
export function isCommonPassword(words: readonly string[]): boolean {
  // Read for each new password, which is rare. The list would occupy 4 MB of memory.
  const list = readFileSync(COMMON_PASSWORDS_FILE, 'utf8')
  return words.some((word) => list.includes(`\n${word}\n`))
}
