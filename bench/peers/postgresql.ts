import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { REPOSITORY } from '../../test/support/programs.ts'
import { until } from '../../test/support/wait.ts'
import { cpuSeconds } from '../machine.ts'
import { peerFolder } from './package.ts'

/** deploy/setup.mjs unpacks PostgreSQL here. */
const ROOT = join(REPOSITORY, 'node_modules/.cache/postgresql/usr')
const PROGRAMS = join(ROOT, 'lib/postgresql/15/bin')
const LIBRARIES = join(ROOT, 'lib', readdirSync(join(ROOT, 'lib')).find((name) => name.includes('linux-gnu')) ?? '')
/** PostgreSQL does not run as root. */
const NOBODY = 65_534
const USER = 'bench'
const DATABASE = 'postgres'
const STANDBYS = ['one', 'two'] as const
const CLIENT = { name: 'postgres', version: '3.4.9' } as const

export const POSTGRESQL_NAME = 'PostgreSQL 15 with two synchronous standbys'

/** The part of the client that is used. */
interface Client {
  (strings: TemplateStringsArray, ...values: unknown[]): Promise<readonly Record<string, unknown>[]>
  end(): Promise<void>
}

/**
 * A primary and two standbys on loopback. A commit waits until one of the standbys has flushed it
 * as well (ANY 1), so two of three have it on disk, as with JetStream.
 */
export class PostgresqlCluster {
  readonly #directory: string
  readonly #servers: readonly ChildProcess[]
  readonly #client: Client

  private constructor(directory: string, servers: readonly ChildProcess[], client: Client) {
    this.#directory = directory
    this.#servers = servers
    this.#client = client
  }

  /** @throws Error if the client cannot be installed from the registry of npm packages. */
  static async start(connections: number): Promise<PostgresqlCluster> {
    const folder = peerFolder(CLIENT.name, CLIENT.version, true)
    if (folder === undefined) throw new Error(`cannot install ${CLIENT.name} ${CLIENT.version}`)
    const connect = createRequire(join(folder, 'package.json'))(CLIENT.name) as (options: object) => Client
    const directory = mkdtempSync(join(tmpdir(), 'bench-postgresql-'))
    chownSync(directory, NOBODY, NOBODY)
    const port = await freePort()
    const data = join(directory, 'primary')
    run('initdb', '-D', data, '-U', USER, '-A', 'trust', '--no-locale', '-E', 'UTF8')
    appendFileSync(join(data, 'postgresql.conf'), settings(directory, port))
    const servers = [start(data)]
    try {
      const client = connect({ host: '127.0.0.1', port, username: USER, database: DATABASE, max: connections })
      await until('PostgreSQL does not start', async () => (await client`SELECT 1`.catch(() => [])).length === 1)
      for (const name of STANDBYS) {
        const copy = join(directory, name)
        const from = `host=127.0.0.1 port=${port} user=${USER} application_name=${name}`
        run('pg_basebackup', '-D', copy, '-d', from, '-X', 'stream', '-R', '-c', 'fast')
        appendFileSync(join(copy, 'postgresql.conf'), `port = ${await freePort()}\n`)
        servers.push(start(copy))
      }
      await until('the standbys are not connected', async () => {
        const rows = await client`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'quorum'`
        return rows.length === STANDBYS.length
      })
      await client`CREATE TABLE events (id bigserial PRIMARY KEY, organization int NOT NULL, batch bytea NOT NULL)`
      // The batches are compressed by none of the peers.
      await client`ALTER TABLE events ALTER COLUMN batch SET STORAGE EXTERNAL`
      // The measurement begins with open connections.
      await Promise.all(Array.from({ length: connections }, () => client`SELECT pg_sleep(0.2)`))
      return new PostgresqlCluster(directory, servers, client)
    } catch (error) {
      for (const server of servers) server.kill('SIGQUIT')
      rmSync(directory, { recursive: true, force: true })
      throw error
    }
  }

  /** Returns when two of the three servers have the batch on disk. */
  async append(organization: number, batch: Buffer): Promise<void> {
    await this.#client`INSERT INTO events (organization, batch) VALUES (${organization}, ${batch})`
  }

  /** CPU seconds of all servers since their start, with their children. */
  get cpuSeconds(): number {
    return this.#servers
      .flatMap(({ pid = 0 }) => [pid, ...childrenOf(pid)])
      .reduce((all, pid) => all + cpuSeconds(pid), 0)
  }

  async stop(): Promise<void> {
    await this.#client.end()
    for (const server of this.#servers) {
      const ended = once(server, 'exit')
      server.kill('SIGQUIT')
      await ended
    }
    rmSync(this.#directory, { recursive: true })
  }
}

function settings(directory: string, port: number): string {
  return `listen_addresses = '127.0.0.1'
port = ${port}
unix_socket_directories = '${directory}'
max_connections = 100
shared_buffers = 512MB
max_wal_size = 4GB
synchronous_standby_names = 'ANY 1 (${STANDBYS.join(', ')})'
`
}

function asNobody(program: string, parameters: readonly string[]): readonly string[] {
  const user = ['--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups']
  return [...user, 'env', `LD_LIBRARY_PATH=${LIBRARIES}`, join(PROGRAMS, program), ...parameters]
}

function run(program: string, ...parameters: string[]): void {
  execFileSync('setpriv', asNobody(program, parameters), { stdio: ['ignore', 'ignore', 'inherit'], cwd: '/' })
}

function start(data: string): ChildProcess {
  return spawn('setpriv', asNobody('postgres', ['-D', data]), { stdio: 'ignore', cwd: '/' })
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}
