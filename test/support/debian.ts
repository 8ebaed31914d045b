import { execFile, execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { promisify } from 'node:util'
import { REPOSITORY } from './programs.ts'
import { testFolder } from './test-folder.ts'

/**
 * A small Debian root file system, which `npm run test:full` creates as root. Tests
 * work on copies and never change the original.
 */
export const DEBIAN = join(REPOSITORY, 'node_modules/.cache/debian')

interface Scope {
  testdir(): string
  teardown(work: () => unknown): void
}

/** A copy of the Debian root file system that a test may change. */
export class DebianTree {
  readonly root: string

  constructor(t: Scope) {
    this.root = join(testFolder(t), 'debian')
    execFileSync('cp', ['--archive', '--reflink=auto', DEBIAN, this.root])
  }

  /**
   * Runs a shell command in the tree, with this machine's network and processes. Returns its
   * output.
   *
   * @throws Error with the output when the command fails.
   */
  run(command: string): string {
    const script = 'mount -t proc proc "$1/proc" && exec chroot "$1" sh -c "exec 2>&1; $2"'
    return execFileSync('unshare', ['--mount', 'sh', '-c', script, 'sh', this.root, command], {
      encoding: 'utf8',
      env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
      maxBuffer: 64 * 1024 * 1024,
    })
  }

  /** Boots systemd in a container whose network is the given namespace. */
  async boot(t: Scope, network: string): Promise<Machine> {
    const container = spawn(
      'systemd-nspawn',
      [
        ...['--quiet', '--register=no', '--keep-unit', '--boot', '--directory', this.root],
        `--network-namespace-path=/run/netns/${network}`,
      ],
      { stdio: 'ignore', env: { PATH: process.env['PATH'] } },
    )
    const ended = new Promise((resolve) => container.once('exit', resolve))
    t.teardown(async () => {
      // Killing the container's first process ends all others. systemd-nspawn then exits, too.
      // Killing systemd-nspawn itself would leave the processes running.
      const [init] = childrenOf(container.pid ?? 0)
      if (init === undefined) container.kill('SIGKILL')
      else process.kill(init, 'SIGKILL')
      await ended
    })
    return Machine.booted(container.pid ?? 0)
  }
}

const BOOT_MS = 60_000
const POLL_MS = 100

/** A booted system. */
export class Machine {
  readonly #init: number

  private constructor(init: number) {
    this.#init = init
  }

  static async booted(container: number): Promise<Machine> {
    const deadline = Date.now() + BOOT_MS
    for (;;) {
      const [init] = childrenOf(container)
      if (init !== undefined) {
        const machine = new Machine(init)
        const state = await machine.try('systemctl is-system-running')
        if (/^(running|degraded)$/m.test(state)) return machine
      }
      if (Date.now() > deadline) throw new Error('the container did not start')
      await later(POLL_MS)
    }
  }

  /**
   * Runs a shell command on the machine. Returns its output.
   *
   * @throws Error with the output when the command fails.
   */
  async run(command: string): Promise<string> {
    const { stdout } = await promisify(execFile)(
      'nsenter',
      [
        '--target',
        `${this.#init}`,
        '--all',
        'env',
        '-i',
        'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
        'sh',
        '-c',
        `exec 2>&1; ${command}`,
      ],
      { maxBuffer: 64 * 1024 * 1024 },
    )
    return stdout
  }

  /** Like `run`, but returns the output even if the command fails. */
  async try(command: string): Promise<string> {
    return this.run(`{ ${command}; } || true`).catch(() => '')
  }
}

/** Child PIDs. systemd-nspawn has one child: the container's first process. */
function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}
