import { NAVIGATION } from '../../console/design/navigation.ts'
import { Router } from '../../console/http/router.ts'
import { ROUTES } from '../../console/routes.ts'
import type { Browser } from './console.ts'
import type { Answer } from './https.ts'

const ROUTER = new Router(ROUTES)

/** Queries of one path that a crawl follows: the sort orders and filters of a table. */
const QUERIES_MAX = 4
/** Paths of one route that a crawl follows, such as those of platforms. */
const PATHS_MAX = 25

export type FormValues = Readonly<Record<string, string>>

/** What the pages of the console show to a user. */
export interface Crawl {
  /** The answers by path with query. */
  readonly answers: ReadonlyMap<string, Answer>
  /** The forms that can be submitted, by path, with the values that they show. */
  readonly forms: ReadonlyMap<string, FormValues>
  /** Links that go to no route. */
  readonly strays: readonly string[]
}

/** Follows every link from the navigation, as a user sees it. `more` are further pages. */
export async function crawl(browser: Browser, more: readonly string[] = []): Promise<Crawl> {
  const answers = new Map<string, Answer>()
  const forms = new Map<string, FormValues>()
  const strays: string[] = []
  const times = new Map<string, number>()
  const isEnough = (what: string, max: number): boolean => {
    const count = (times.get(what) ?? 0) + 1
    times.set(what, count)
    return count > max
  }
  const entries = NAVIGATION.flatMap((group) => group.entries.map(({ path }) => path))
  const { text } = await browser.get('/account')
  const waiting = ['/account', ...entries.filter((path) => text.includes(`<a href="${path}"`)), ...more]
  for (let address = waiting.shift(); address !== undefined; address = waiting.shift()) {
    const url = new URL(address, 'https://console.invalid/')
    const key = url.pathname + url.search
    if (url.origin !== 'https://console.invalid' || url.pathname.startsWith('/assets/')) continue
    if (answers.has(key)) continue
    const found = ROUTER.find('GET', url.pathname)
    if (found === undefined) {
      strays.push(key)
      continue
    }
    if (isEnough(url.pathname, QUERIES_MAX)) continue
    if (found.route.path !== url.pathname && isEnough(found.route.path, PATHS_MAX)) continue
    const answer = await browser.get(key)
    answers.set(key, answer)
    const shown = linksOf(answer.text)
    const location = String(answer.headers['location'] ?? '')
    for (const link of [...shown.pages, location].filter((each) => each !== '')) {
      const target = new URL(link, url)
      waiting.push(target.origin === url.origin ? target.pathname + target.search : target.href)
    }
    for (const { action, values } of shown.forms) {
      const { pathname } = new URL(action, url)
      if (ROUTER.find('POST', pathname) === undefined) strays.push(`POST ${pathname}`)
      else forms.set(pathname, values)
    }
  }
  return { answers, forms, strays }
}

/** The route of a path, as `GET /platforms/:name`. */
export function routeOf(method: 'GET' | 'POST', path: string): string {
  return `${method} ${ROUTER.find(method, new URL(path, 'https://x').pathname)?.route.path}`
}

/** The routes of a crawl, each with the paths at which it was found. */
export function routesOf({ answers, forms }: Crawl): Map<string, string[]> {
  const found = new Map<string, string[]>()
  const add = (route: string, path: string) => found.set(route, [...(found.get(route) ?? []), path])
  for (const path of answers.keys()) add(routeOf('GET', path), path)
  for (const path of forms.keys()) add(routeOf('POST', path), path)
  return found
}

interface ShownForm {
  readonly action: string
  readonly values: FormValues
}

/** Addresses of links and of what scripts fetch, and forms that a user can submit. */
function linksOf(text: string): { readonly pages: string[]; readonly forms: ShownForm[] } {
  const pages = [...text.matchAll(/<a [^>]*?href="([^"]*)"|data-[\w-]+-from="([^"]*)"/g)].map(
    ([, href = '', fetched = '']) => decoded(href + fetched),
  )
  const forms: ShownForm[] = []
  for (const [, attributes = '', content = ''] of text.matchAll(/<form ([^>]*)>(.*?)<\/form>/gs)) {
    const action = attributeOf(attributes, 'action')
    const isPost = attributeOf(attributes, 'method') === 'post'
    if (!isPost && action !== '') pages.push(action)
    if (/<fieldset[^>]* disabled/.test(content)) continue
    const values = valuesOf(content)
    if (isPost) forms.push({ action, values })
    // Buttons that send the form to another address.
    for (const [, button = ''] of content.matchAll(/<button ([^>]*formaction=[^>]*)>/g)) {
      const isGet = !isPost || attributeOf(button, 'formmethod') === 'get'
      if (isGet) pages.push(attributeOf(button, 'formaction'))
      else forms.push({ action: attributeOf(button, 'formaction'), values })
    }
  }
  return { pages: pages.filter((href) => !href.startsWith('#')), forms }
}

/** What a browser would submit if the user changed nothing. */
function valuesOf(content: string): FormValues {
  const values: Record<string, string> = {}
  for (const [, name, attributes = '', inner = ''] of content.matchAll(
    /<(input|button|textarea|select) ([^>]*?)\/?>(?:(.*?)<\/(?:button|textarea|select)>)?/gs,
  )) {
    const field = attributeOf(attributes, 'name')
    if (field === '') continue
    const chosen = /<option ([^>]*selected[^>]*)>/.exec(inner)?.[1] ?? /<option ([^>]*)>/.exec(inner)?.[1] ?? ''
    values[field] ??= attributeOf(name === 'select' ? chosen : attributes, 'value')
  }
  return values
}

function attributeOf(attributes: string, name: string): string {
  return decoded(new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ?? '')
}

function decoded(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&')
}
