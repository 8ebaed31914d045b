import { hostname } from 'node:os'
import { linkUrl } from '../engine/admin/account-links.ts'
import { Administration } from '../engine/admin/administration.ts'
import { systemClock } from '../engine/kernel/process/clock.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import { secretText } from '../engine/kernel/process/table.ts'
import type { Store } from '../engine/store/store.ts'

/**
 * While no user can sign in, prints a setup link on a terminal. Without a terminal, logs the
 * command that prints the link, because the secret in the link must not be in the log of a
 * container or of systemd.
 */
export function offerSetupLink(
  store: Store,
  url: string,
  dataDirectory: string,
  log: Logger,
  output: { readonly isTTY?: boolean; write(text: string): unknown } = process.stdout,
): void {
  if (canSomebodySignIn(store)) return
  const organizations = store.organizations.all()
  const [organization] = organizations
  if (output.isTTY !== true || organizations.length > 1) {
    const which = organizations.length > 1 ? ' --org NAME' : ''
    const command = `posture-admin setup-link --data-dir ${dataDirectory}${which}`
    log.info({ command }, 'nobody can sign in to the console yet; run this command')
    return
  }
  // Browsers cannot open the wildcard address.
  const origin = url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, `//${hostname()}`)
  try {
    const { secret } = new Administration(store, systemClock).accountLinks.setup(organization)
    output.write(`\n${secretText('Set up the console', linkUrl(origin, secret))}\n`)
  } catch (error) {
    logFailure(log, error, 'no setup link could be made', { level: 'warn' })
  }
}

/** Users of an identity provider cannot sign in without it. */
export function canSomebodySignIn({ users, passkeys, identityProviders }: Store): boolean {
  if (!identityProviders.isEmpty()) return !users.isEmpty()
  return users.all().some(({ id, passwordHash }) => passwordHash !== '' || passkeys.ofUser(id).length > 0)
}
