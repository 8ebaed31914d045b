import { newSecret } from '../../engine/admin/secrets.ts'
import { systemClock } from '../../engine/kernel/process/clock.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { makeApiKey } from '../../engine/store/access-key.ts'
import { firstBodyKey, gzipBodyKey, PublishedList } from '../../engine/store/published.ts'
import { Store } from '../../engine/store/store.ts'
import { NameMatcher } from '../../registry/match.ts'
import { ScanEvents } from './scan-events.ts'

/** A store of organizations with published data, and keys that can read it. */
export interface ApiData {
  /** Directory of the store. */
  readonly directory: string
  readonly keys: readonly string[]
  /** The response body for one of the keys. */
  readonly body: Buffer
  readonly gzipBody: Buffer
}

/** Created together, because each transaction is flushed. */
const ORGANIZATIONS_PER_TRANSACTION = 100

/**
 * Number of organizations, of keys, and of platforms that a scan has found for each organization.
 */
export interface ApiDataSizes {
  readonly organizations: number
  readonly keysEach: number
  readonly platformsEach: number
}

export async function makeApiData(
  directory: string,
  { organizations, keysEach, platformsEach }: ApiDataSizes,
): Promise<ApiData> {
  const store = new Store(directory)
  const work = new ScanEvents(Date.now())
  const matcher = new NameMatcher(work.catalog)
  const make = (index: number) =>
    store.organizations.create({ name: `O${index}`, domain: 'o.example', plan: 'enterprise' }, Date.now())

  // Only the first organization is scanned. The others publish the same data with their own IDs.
  const first = store.environment.write(() => make(0))
  const names = work.catalog.platforms
    .flatMap(({ domains }) => domains.map(({ domain }) => domain))
    .filter((name) => matcher.match(name) !== undefined)
  const seen = new Map(names.map((name) => [matcher.match(name)?.platform.id, name]))
  const events = [...seen.values()].slice(0, platformsEach).map((name, index) => ({ ...work.event(0, index), name }))
  store.environment.write(() => store.buffer.append(first.id, events))
  runScan(store, { matcherOf: () => matcher }, first.id, 'administrator', systemClock)
  const { head, elements } = store.environment.read(() => {
    const found = store.published.head(first.id, PublishedList.discovery)
    const runs = store.published.elements(first.id, PublishedList.discovery, found?.count ?? 0, 0, platformsEach)
    return {
      head: found?.text.toString() ?? '',
      elements: (JSON.parse(`[${Buffer.concat(runs).toString()}]`) as { id: string }[]).map((one) =>
        JSON.stringify(one),
      ),
    }
  })

  const keys: string[] = []
  const nowMs = Date.now()
  for (let from = 0; from < organizations; from += ORGANIZATIONS_PER_TRANSACTION) {
    store.environment.write(() => {
      for (let index = from; index < Math.min(organizations, from + ORGANIZATIONS_PER_TRANSACTION); index++) {
        const organization = index === 0 ? first : make(index)
        const text = head.replaceAll(first.id, organization.id)
        store.published.replace(organization.id, PublishedList.discovery, text, elements)
        for (let key = 0; key < keysEach; key++) {
          const raw = makeApiKey()
          store.apiKeys.add({ ...newSecret(organization, `key ${key}`, raw, nowMs), scopes: ['discovery:read'] })
          keys.push(raw)
        }
      }
    })
  }
  const bodies = store.environment.read(() => ({
    body: Buffer.from(store.published.firstBody(firstBodyKey(first.id, PublishedList.discovery), true) ?? ''),
    gzipBody: Buffer.from(store.published.gzipBody(gzipBodyKey(first.id, PublishedList.discovery, 0), true) ?? ''),
  }))
  await store.close()
  // Keys of one organization are not adjacent.
  const spread = keys.map((_, index) => keys[(index * 7919) % keys.length] as string)
  return { directory, keys: spread, ...bodies }
}
