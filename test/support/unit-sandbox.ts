import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/*
 * The restrictions of a systemd unit without systemd: the system calls that its filter allows, and
 * with bubblewrap a read-only file system, private devices, no capability and no new privileges.
 * Left out: filters by the arguments of a system call (RestrictAddressFamilies, RestrictNamespaces,
 * LockPersonality), and ProcSubset.
 */

const HEADERS = ['/usr/include/x86_64-linux-gnu/asm/unistd_64.h', '/usr/include/aarch64-linux-gnu/asm/unistd.h']
/** Audit architecture of seccomp(2). */
const ARCHITECTURE = process.arch === 'x64' ? 0xc000003e : 0xc00000b7

/** Why the sandbox cannot run here; undefined if it can. */
export function unitSandboxMissing(): string | undefined {
  if (!existsSync('/usr/bin/bwrap')) return 'bubblewrap is not installed'
  return HEADERS.some((file) => existsSync(file)) ? undefined : 'the headers of the kernel are not installed'
}

/** The values of a setting of a unit, in order. */
function valuesOf(unit: string, name: string): string[] {
  const lines = readFileSync(join(REPOSITORY, unit), 'utf8').split('\n')
  return lines.filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1))
}

/** The system calls of a group, by `systemd-analyze`. */
function callsOf(word: string): string[] {
  if (!word.startsWith('@')) return [word]
  const listed = execFileSync('systemd-analyze', ['syscall-filter', word], { encoding: 'utf8' })
  const words = listed.split('\n').flatMap((line) => /^ {4}([@a-z0-9_-]+)$/.exec(line)?.slice(1) ?? [])
  return words.flatMap(callsOf)
}

/** The system calls that the filter of a unit allows (systemd.exec(5), SystemCallFilter). */
export function allowedCalls(unit: string): ReadonlySet<string> {
  const allowed = new Set(callsOf('@default'))
  for (const value of valuesOf(unit, 'SystemCallFilter')) {
    const isDenied = value.startsWith('~')
    for (const call of value.replace('~', '').split(' ').flatMap(callsOf)) {
      if (isDenied) allowed.delete(call)
      else allowed.add(call)
    }
  }
  return allowed
}

/** A program for seccomp(2) that answers EPERM to all other system calls. */
function filterOf(allowed: ReadonlySet<string>): Buffer {
  const header = readFileSync(HEADERS.find((file) => existsSync(file)) ?? '', 'utf8')
  const numbers = [...header.matchAll(/^#define __NR_(\w+) (\d+)$/gm)]
    .filter(([, name = '']) => allowed.has(name))
    .map(([, , number]) => Number(number))
  const instruction = (code: number, whenTrue: number, whenFalse: number, value: number): Buffer => {
    const bytes = Buffer.alloc(8)
    bytes.writeUInt16LE(code, 0)
    bytes[2] = whenTrue
    bytes[3] = whenFalse
    bytes.writeUInt32LE(value, 4)
    return bytes
  }
  const [load, ifEqual, answer] = [0x20, 0x15, 0x06]
  const [allow, kill, refuse] = [0x7fff0000, 0x80000000, 0x00050001]
  return Buffer.concat([
    ...[instruction(load, 0, 0, 4), instruction(ifEqual, 1, 0, ARCHITECTURE), instruction(answer, 0, 0, kill)],
    instruction(load, 0, 0, 0),
    ...numbers.flatMap((number) => [instruction(ifEqual, 0, 1, number), instruction(answer, 0, 0, allow)]),
    instruction(answer, 0, 0, refuse),
  ])
}

/**
 * The words before a command that runs it with the restrictions. Only `writable` can be written.
 */
export function unitSandbox(unit: string, folder: string, writable: string): readonly string[] {
  const filter = join(folder, 'filter.bpf')
  writeFileSync(filter, filterOf(allowedCalls(unit)))
  const words = [
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp'],
    ...['--ro-bind', REPOSITORY, REPOSITORY, '--bind', writable, writable],
    ...['--unshare-ipc', '--unshare-uts', '--cap-drop', 'ALL', '--die-with-parent', '--seccomp', '9'],
  ]
  return ['/bin/sh', '-c', `exec bwrap ${words.map((word) => `'${word}'`).join(' ')} "$@" 9< '${filter}'`, 'sh']
}
