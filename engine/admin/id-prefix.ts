import { Fault } from '../kernel/process/error-codes.ts'

/** Minimum length of an abbreviated id: up to the first hyphen. */
const PREFIX_CHARACTERS_MIN = 8
const UUID_CHARACTERS = 36

/** Finds an element by id or id prefix. @throws Fault USAGE, NOT_FOUND, CONFLICT. */
export function byIdPrefix<T extends { readonly id: string }>(all: readonly T[], given: string, what: string): T {
  const prefix = given.toLowerCase()
  if (!/^[0-9a-f-]+$/.test(prefix) || prefix.length < PREFIX_CHARACTERS_MIN || prefix.length > UUID_CHARACTERS) {
    throw new Fault(
      'USAGE',
      `${what} ${JSON.stringify(given)}: expected its id, or at least the first ${PREFIX_CHARACTERS_MIN} characters of it`,
    )
  }
  const [found, ...others] = all.filter(({ id }) => id.startsWith(prefix))
  if (found === undefined)
    throw new Fault('NOT_FOUND', `no ${what} ${JSON.stringify(given)}; posture-admin ${what} list shows all`)
  if (others.length === 0) return found
  throw new Fault('CONFLICT', `${others.length + 1} ${what}s begin with ${given}. Give more characters of the id`)
}
