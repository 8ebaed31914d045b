import { serveConsole } from '../../test/support/console.ts'
import { crawl, routesOf } from '../../test/support/console-crawl.ts'
import { plainWords, populate } from '../../test/support/console-data.ts'

/** A data directory with an organization that uses the console. */
export interface ConsoleData {
  /** One path of each page. */
  readonly pages: readonly string[]
  /** Cookie field of a signed-in owner. */
  readonly cookie: string
}

export async function makeConsoleData(directory: string, platforms: number): Promise<ConsoleData> {
  const cleanups: (() => unknown)[] = []
  const t = { testdir: () => directory, teardown: (work: () => unknown) => cleanups.unshift(work) }
  try {
    const site = await serveConsole(t, { startMs: Date.now(), unchecked: true })
    const owner = populate(site, site.organization, plainWords(), { platforms, sources: 100 })
    const crawled = await crawl(owner)
    const pages = [...routesOf(crawled)]
      .filter(([route, [path = '']]) => {
        // Redirects and forms are not pages.
        return route.startsWith('GET ') && !route.endsWith('.csv') && crawled.answers.get(path)?.status === 200
      })
      .flatMap(([, paths]) => paths.slice(0, 1))
    return { pages, cookie: [...owner.cookies].map(([name, value]) => `${name}=${value}`).join('; ') }
  } finally {
    for (const cleanUp of cleanups) await cleanUp()
  }
}
