import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { NETWORK_FAILURES_MAX } from '../../console/sign-in/attempts.ts'
import { admin, startService } from '../support/programs.ts'

/** All browsers have one address, so none is limited by it. */
const BEHIND_PROXY = ['--max-connections-per-address', '0']
const PASSWORD = 'correct horse battery staple'

/** The niceness of a thread: the 17th field after its name (proc(5)). */
function nicenessOf(file: string): number {
  const stat = readFileSync(file, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
}

t.test('the console in a running service: its thread reads, the main thread writes', async (t) => {
  const directory = join(t.testdir(), 'service')
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const service = await startService(directory, ['--ingest-port', 'off', '--log-level', 'DEBUG', ...BEHIND_PROXY])
  const origin = `https://localhost:${service.consolePort}`
  const dispatcher = new Agent({ connect: { ca: readFileSync(join(directory, 'tls/certificate.pem')) } })
  const post = async (path: string, fields: Record<string, string>, cookie = '') => {
    const headers = { origin, 'sec-fetch-site': 'same-origin', cookie }
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = new URLSearchParams(fields).toString()
    return request(origin + path, { dispatcher, method: 'POST', headers: { ...headers, ...type }, body })
  }
  const { pid = 0 } = service.child
  const niceness = readdirSync(`/proc/${pid}/task`).map((thread) => nicenessOf(`/proc/${pid}/task/${thread}/stat`))
  t.same(
    niceness.filter((each) => each !== nicenessOf(`/proc/${pid}/stat`)),
    [5],
    'one thread gives way to the others',
  )
  const [link] = await admin('setup-link', '--console-origin', origin, ...data)
  t.match(link, { for: 'Acme', url: new RegExp(`^${origin}/setup#[0-9a-f]{64}$`) })
  const secret = String(link?.['url']).split('#')[1] ?? ''
  const made = await post('/setup/account', { secret, name: 'ada', password: PASSWORD, repeated: PASSWORD })
  t.equal(made.statusCode, 303)
  await made.body.dump()
  const cookies = [made.headers['set-cookie'] ?? []].flat().map((line) => line.split(';', 1)[0])
  const cookie = cookies.join('; ')
  const page = await request(`${origin}/platforms`, { dispatcher, headers: { cookie } })
  t.equal(page.statusCode, 200)
  t.match(await page.body.text(), /Acme/)
  t.match(await admin('member', 'list', '--org', 'Acme', ...data), [{ name: 'ada', role: 'owner', can_sign_in: true }])
  const guesses = Array.from({ length: NETWORK_FAILURES_MAX + 1 }, async (_, index) => {
    const { statusCode, body } = await post('/sign-in', { name: `user-${index}`, password: 'wrong' })
    await body.dump()
    return statusCode
  })
  t.same([...new Set(await Promise.all(guesses))], [403], 'wrong passwords of one address lock nobody out')
  const out = await post('/sign-out', {}, cookie)
  await out.body.dump()
  t.equal((await request(`${origin}/platforms`, { dispatcher, headers: { cookie } })).statusCode, 303)
  await dispatcher.close()
  mkdirSync(join(directory, 'uploads'))
  writeFileSync(join(directory, 'uploads/log'), 'a log that nobody has added')
  service.child.kill('SIGTERM')
  const { status, stderr, stdout } = await service.ended
  t.equal(status, 0)
  t.notOk(existsSync(join(directory, 'uploads')), 'no copy of an uploaded file is left')
  t.match(stderr, /nobody can sign in to the console yet/)
  for (const hidden of [secret, PASSWORD, ...cookies.map((each) => String(each).split('=')[1])]) {
    t.notOk((stderr + stdout).includes(String(hidden)), 'no secret is logged')
  }
})
