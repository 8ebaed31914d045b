import { userInfo } from 'node:os'
import { join } from 'node:path'
import { Administration } from '../admin/administration.ts'
import type { Actor } from '../admin/audited-changes.ts'
import { becomeOwner } from '../kernel/process/become-user.ts'
import { type Clock, systemClock } from '../kernel/process/clock.ts'
import { setting, someText } from '../kernel/process/settings.ts'
import { printRows, printsTable, type Shown, secretText } from '../kernel/process/table.ts'
import { confirmChanges } from '../store/confirm-changes.ts'
import type { Organization } from '../store/organizations.ts'
import { RegistryInForce } from '../store/registry-in-force.ts'
import { Store } from '../store/store.ts'

export const storeParams = {
  dataDir: setting(someText().default('/var/lib/posture-service'), {
    flag: '--data-dir <directory>',
    env: 'DATA_DIR',
    about: "Use the service's data directory; the service may be running",
  }),
}

/** The options of the command line that select the store, the organization and the actor. */
export interface StoreOptions {
  readonly dataDir: string
  readonly org?: string | undefined
  readonly as?: string | undefined
}

/** Rows to print. A secret is printed below a table; in JSON it is a field of its row. */
export interface Result extends Shown {
  readonly secret?: { readonly name: string; readonly raw: string }
}

/** Where a command prints: standard output, or the caller in the same process (program.ts). */
export class Output {
  readonly print: (text: string) => void
  readonly isTable: boolean
  readonly #json: boolean

  constructor(json: boolean, print: (text: string) => void) {
    this.print = print
    this.isTable = printsTable({ json })
    this.#json = json
  }

  show({ secret, ...shown }: Result): void {
    printRows(shown, { json: this.#json }, this.print)
    if (secret !== undefined && this.isTable) this.print(`\n${secretText(secret.name, secret.raw)}`)
  }
}

/** The environment of a posture-admin command. */
export interface AdminContext {
  readonly store: Store
  readonly administration: Administration
  /** The registry of each organization. */
  readonly registry: RegistryInForce
  readonly clock: Clock
  /** Who runs the command. */
  readonly actor: Actor
  /** The one that --org names, or the only one. @throws Fault NOT_FOUND, USAGE */
  readonly organization: Organization
  readonly output: Output
}

/**
 * Opens the store, runs `work` and closes the store. Creates the store only with `create`.
 * Afterward, root has become the owner of the store: a command reads and opens before what root has
 * named.
 */
export async function withStore(
  options: StoreOptions & { readonly create?: boolean },
  output: Output,
  work: (context: AdminContext) => void | Promise<void>,
): Promise<void> {
  const { dataDir, org, create = false } = options
  const actor = actorOf(options)
  becomeOwnerOf(dataDir, { create })
  const store = new Store(dataDir, { mustExist: !create })
  try {
    const administration = new Administration(store, systemClock, actor)
    const registry = new RegistryInForce(store)
    await work({
      ...{ store, administration, registry, clock: systemClock, actor, output },
      get organization() {
        return administration.organization(org)
      },
    })
    await confirmChanges(store)
  } finally {
    await store.close()
  }
}

/** Root becomes the owner of the data directory. @throws Fault STORE_UNWRITABLE */
export function becomeOwnerOf(dataDir: string, options: { create?: boolean } = {}): void {
  for (const used of [dataDir, join(dataDir, 'store')]) becomeOwner('--data-dir', used, options)
}

/** Under sudo, the actor is the calling user. To be called before root becomes another user. */
export function actorOf({ as }: Pick<StoreOptions, 'as'>): Actor {
  if (as !== undefined) return { kind: 'member', name: as }
  return { kind: 'operator', name: process.env['SUDO_USER'] || userName() }
}

/** In a container, the uid may have no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? '?'}`
  }
}
