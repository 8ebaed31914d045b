import { gzipSync } from 'node:zlib'
import { RecentKeyUses } from '../../api/key-uses.ts'
import { makeRateTable, RateLimit } from '../../api/rate-limit/rate-limit.ts'
import { apiServer } from '../../api/routes.ts'
import { Administration } from '../../engine/admin/administration.ts'
import { SCOPES, type Scope } from '../../engine/store/secrets.ts'
import { type IMPLEMENTATIONS, serve, type TestServer } from './https.ts'
import { openStore, type TestStore } from './store.ts'

export const SALES_EMAIL = 'sales@vendor.example'
const NO_DOCUMENT = { body: Buffer.from('{}'), gzip: gzipSync('{}'), tag: '"0"' }

export interface ApiSite extends TestServer {
  readonly opened: TestStore
  readonly administration: Administration
  /** The time of the rate limits. */
  readonly now: { ms: number }
  /** A new API key of the organization with this name. */
  key(name: string, scopes?: readonly Scope[]): string
}

/** The API over TLS on a store of its own. `parts` replace those of the service. */
export async function serveApi(
  t: { testdir(): string; teardown(work: () => unknown): void },
  implementation: (typeof IMPLEMENTATIONS)[number],
  parts: Partial<Parameters<typeof apiServer>[0]> = {},
  options: Parameters<typeof openStore>[1] = {},
): Promise<ApiSite> {
  const opened = openStore(t, options)
  const now = { ms: 1 }
  const [rateLimit, addressLimit] = [1, 2].map(() => new RateLimit(makeRateTable(), () => now.ms)) as [
    RateLimit,
    RateLimit,
  ]
  const own = { store: opened.store, document: NO_DOCUMENT, salesEmail: SALES_EMAIL, keyUses: new RecentKeyUses() }
  const served = apiServer({ ...own, rateLimit, addressLimit, ...parts })
  const server = await serve(t, implementation, opened.directory, served)
  const administration = new Administration(opened.store, opened.clock)
  const { apiKeys } = administration
  return {
    ...{ ...server, opened, administration, now },
    key: (name, scopes = SCOPES) => apiKeys.create(administration.organization(name), 'test', scopes).raw,
  }
}
