import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { join } from 'node:path'
import { decode, encode } from 'dns-packet'
import { REPOSITORY } from './programs.ts'
import { until } from './wait.ts'

/*
 * DNS servers and proxies of Debian. The set-up unpacks them (deploy/setup.mjs).
 */
export const ROOT = join(REPOSITORY, 'node_modules/.cache/blockers')
const LIBRARIES = ['usr/lib', 'lib'].map((folder) => join(ROOT, folder, 'x86_64-linux-gnu')).join(':')
export const ENVIRONMENT = { PATH: process.env['PATH'], LD_LIBRARY_PATH: LIBRARIES }

interface Started {
  readonly child: ChildProcess
  readonly output: () => string
}

/** The output of a program that ends. */
export function check(program: string, args: readonly string[]): string {
  return String(execFileSync(join(ROOT, program), args, { env: ENVIRONMENT, stdio: ['ignore', 'pipe', 'pipe'] }))
}

/** A program that runs until the test ends, and what it has printed so far. */
export function start(t: { teardown(work: () => unknown): void }, program: string, args: readonly string[]): Started {
  const child = spawn(join(ROOT, program), args, { env: ENVIRONMENT, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      text += String(chunk)
    })
  }
  t.teardown(async () => {
    if (child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  return { child, output: () => text }
}

/** The response code for a name, and the address. */
async function ask(port: number, name: string): Promise<string | undefined> {
  const socket = createSocket('udp4')
  try {
    const answered = once(socket, 'message', { signal: AbortSignal.timeout(1000) })
    socket.send(encode({ type: 'query', id: 1, flags: 0x0100, questions: [{ type: 'A', name }] }), port, '127.0.0.1')
    const [message] = (await answered) as [Buffer]
    const packet = decode(message) as ReturnType<typeof decode> & { rcode: string }
    const answer = packet.answers?.find(({ type }) => type === 'A') as { data: string } | undefined
    return answer?.data ?? packet.rcode
  } catch {
    // No answer yet.
    return undefined
  } finally {
    socket.close()
  }
}

/** Waits until a DNS server answers. */
export async function answersOf(
  { child, output }: Started,
  port: number,
  names: readonly string[],
): Promise<Record<string, string>> {
  const answers: Record<string, string> = {}
  for (const name of names) {
    answers[name] = await until(`an answer for ${name}`, () => {
      if (child.exitCode !== null) throw new Error(output())
      return ask(port, name)
    })
  }
  return answers
}
