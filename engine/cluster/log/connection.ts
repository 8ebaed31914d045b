import { randomInt } from 'node:crypto'
import type { Socket } from 'node:net'
import {
  type Authenticator,
  AuthorizationError,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
} from '@nats-io/transport-node'
import { Fault } from '../../kernel/process/error-codes.ts'
import type { Logger } from '../../kernel/process/log.ts'
import { readPrivateFile } from '../../kernel/process/private-file.ts'

const RECONNECT_MS = 500
/** A broker may accept a connection and send nothing. Another one is tried before REPLICA_MAX_LAG_SECONDS. */
const CONNECT_MS = 5000
/** Milliseconds between two questions whether the connection lives, and how many may be open. */
const PING_MS = 2000
const PINGS_MAX = 2

/** How to reach the brokers. */
export interface BrokerOptions {
  /** Host with port. */
  readonly servers: readonly string[]
  /** A file with the seed of an nkey, or with credentials (.creds). '': none. */
  readonly credentialsFile: string
  /** PEM file with the CA certificates to trust. '': those of Node. */
  readonly caFile: string
}

/**
 * Connects to one of the brokers, and from then on to another one whenever the connection is lost.
 * Without TLS only on loopback: the batches name who visits what.
 *
 * @throws Fault USAGE, BROKERS_REFUSED, BROKERS_UNREACHABLE
 */
export async function connectToBrokers(options: BrokerOptions, log: Logger): Promise<NatsConnection> {
  const { caFile, credentialsFile } = options
  const isLocal = options.servers.every((server) => LOOPBACK.test(server))
  const servers = fromAnyOn(options.servers)
  try {
    const connection = await connect({
      servers,
      noRandomize: true,
      name: 'posture-service',
      timeout: CONNECT_MS,
      ...(caFile === '' && isLocal ? {} : { tls: caFile === '' ? {} : { caFile } }),
      ...(credentialsFile === '' ? {} : { authenticator: authenticatorOf(credentialsFile) }),
      reconnectDelayHandler: delaysBetweenAttempts(),
      maxReconnectAttempts: -1,
      // The client gives up after two refusals. A busy broker refuses with a timeout. See Brokers.
      ignoreAuthErrorAbort: true,
      // Those that a broker names may not be on loopback, and would be used without TLS.
      ignoreClusterUpdates: true,
      pingInterval: PING_MS,
      maxPingOut: PINGS_MAX,
      // Otherwise each publish creates an error for its stack, in case that it fails.
      noAsyncTraces: true,
    })
    // The client removes brokers that failed before it was connected. That of the connection is
    // tried last when it is lost.
    const current = connection.getServer()
    connection.setServers(servers.toSorted((a, b) => Number(a === current) - Number(b === current)))
    void watchStatus(connection, log)
    return connection
  } catch (error) {
    if (error instanceof Fault) throw error
    const { message } = error as Error
    const what = `--brokers ${options.servers.join(',')}: ${message}`
    if (error instanceof AuthorizationError && !AUTHENTICATION_TIMEOUT.test(message)) {
      throw new Fault('BROKERS_REFUSED', `${what}; check --broker-credentials-file`, { cause: error })
    }
    throw new Fault('BROKERS_UNREACHABLE', what, { cause: error })
  }
}

const AUTHENTICATION_TIMEOUT = /timeout/i

/** The brokers in order, from one of them by chance, so that nodes use all of them. */
function fromAnyOn(servers: readonly string[]): string[] {
  const first = randomInt(servers.length)
  return [...servers.slice(first), ...servers.slice(0, first)]
}

/**
 * What the client asks before each attempt: how long after the last one of the same broker it is
 * due. The client compares times of day. If the clock was set back, it would try none until the
 * time of the last attempt comes again. So it waits for at most RECONNECT_MS, and the next attempt
 * is due in any case.
 */
function delaysBetweenAttempts(): () => number {
  let waits = false
  return () => {
    waits = !waits
    return waits ? RECONNECT_MS : Number.NEGATIVE_INFINITY
  }
}

const LOOPBACK = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]|localhost)(:\d+)?$/

function authenticatorOf(file: string): Authenticator {
  const where = `--broker-credentials-file ${file}`
  const text = readPrivateFile(where, file, { code: 'USAGE' })
  if (text.includes('BEGIN NATS USER JWT')) return credsAuthenticator(Buffer.from(text))
  if (!/^SU[A-Z2-7]{56}$/.test(text)) {
    throw new Fault('USAGE', `${where}: expected the seed of a user's nkey (SU…), or credentials of nsc`)
  }
  return nkeyAuthenticator(Buffer.from(text))
}

/** Logs each loss of the connection once, and each reason for which brokers refuse another one. */
async function watchStatus(connection: NatsConnection, log: Logger): Promise<void> {
  let isConnected = true
  const refusals = new Set<string>()
  for await (const status of connection.status()) {
    if (status.type === 'staleConnection') destroySocket(connection)
    else if (status.type === 'disconnect') {
      if (isConnected) log.warn({ server: status.server }, 'the connection to the broker is lost')
      isConnected = false
    } else if (status.type === 'reconnect' && !isConnected) {
      log.info({ server: status.server }, 'connected to a broker again')
      isConnected = true
      refusals.clear()
    } else if (status.type === 'error') {
      const { message: reason } = status.error
      if (!refusals.has(reason)) log.error({ reason }, 'a broker reports an error')
      if (!isConnected) refusals.add(reason)
    }
  }
}

/**
 * Before the client connects to another broker, it waits until its last bytes are written. A broker
 * that is lost reads none of them, and the kernel gives up after 15 minutes. The socket is a
 * private part of the client (nats-core 3.4).
 */
export function destroySocket(connection: NatsConnection): void {
  const { protocol } = connection as unknown as { protocol: { transport: { socket?: Socket } } }
  protocol.transport.socket?.destroy()
}
