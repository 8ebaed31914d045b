import { newSecret } from '../../engine/admin/secrets.ts'
import { makeApiKey } from '../../engine/store/access-key.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { serveConsole, type TestConsole } from '../../test/support/console.ts'
import { crawl, routesOf } from '../../test/support/console-crawl.ts'
import { plainWords, populate, type Words } from '../../test/support/console-data.ts'
import { makeOrganization } from '../../test/support/store.ts'

/** A data directory with an organization that uses the console, and one that uses the API. */
export interface ConsoleData {
  readonly directory: string
  /** One path of each page. */
  readonly pages: readonly string[]
  /** Cookie fields of signed-in users. The first is an owner. */
  readonly cookies: readonly string[]
  readonly keys: readonly string[]
  readonly platforms: number
}

export interface ConsoleDataSizes {
  readonly platforms: number
  readonly users: number
  readonly keys: number
}

export async function makeConsoleData(
  directory: string,
  { platforms, users, keys }: ConsoleDataSizes,
): Promise<ConsoleData> {
  const cleanups: (() => unknown)[] = []
  const t = { testdir: () => directory, teardown: (work: () => unknown) => cleanups.unshift(work) }
  try {
    const site = await serveConsole(t, { startMs: Date.now(), unchecked: true })
    const owner = populate(site, site.organization, plainWords(), { platforms, sources: 100 })
    const crawled = await crawl(owner)
    const pages = [...routesOf(crawled)]
      .filter(([route, [path = '']]) => {
        // Redirects and forms are no pages.
        return route.startsWith('GET ') && !route.endsWith('.csv') && crawled.answers.get(path)?.status === 200
      })
      .flatMap(([, paths]) => paths.slice(0, 1))
    const others = Array.from({ length: users }, (_, at) => site.signIn(`user ${at}`, 'owner'))
    const cookies = [owner, ...others].map((browser) =>
      [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    )
    const api = makeOrganization(site, 'API')
    populate(site, api, apiWords(), { platforms, sources: 1 })
    return { directory, pages, cookies, keys: addKeys(site, api, keys), platforms }
  } finally {
    for (const cleanUp of cleanups) await cleanUp()
  }
}

/** Names of users and bound networks are unique in the whole service. */
function apiWords(): Words {
  let addresses = 0
  return { ...plainWords(), text: (what) => `API ${what}`, address: () => `198.51.100.${++addresses}` }
}

/** More than the use case allows, so that no rate limit applies. */
function addKeys({ store }: TestConsole, organization: Organization, count: number): string[] {
  return store.environment.write(() =>
    Array.from({ length: count }, (_, at) => {
      const raw = makeApiKey()
      store.apiKeys.add({ ...newSecret(organization, `key ${at}`, raw, Date.now()), scopes: ['discovery:read'] })
      return raw
    }),
  )
}
