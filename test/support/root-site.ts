import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { giveTo, SERVICE_USER } from './hostile-store.ts'
import { admin } from './programs.ts'

/** A data directory of the service's user, and a directory that only root can use. */
export interface RootSite {
  readonly directory: string
  readonly data: string
  /** The option that names the data directory. */
  readonly at: readonly string[]
  readonly ofRoot: string
  readonly token: string
  readonly tokenId: string
}

export async function rootSite(t: Test): Promise<RootSite> {
  const directory = t.testdir()
  const [data, ofRoot] = [join(directory, 'data'), join(directory, 'of-root')]
  const at = ['--data-dir', data]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...at)
  const [token] = await admin('token', 'generate', 'branch', '--org', 'Acme', ...at)
  giveTo(SERVICE_USER, data)
  mkdirSync(ofRoot, { mode: 0o700 })
  return { directory, data, at, ofRoot, token: String(token?.['token']), tokenId: String(token?.['id']) }
}
