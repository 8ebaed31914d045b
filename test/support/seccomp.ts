import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { REPOSITORY } from './programs.ts'

/*
 * The system calls that a container engine allows in a container: Podman's default profile, which
 * is derived from Docker's. The set-up of `npm run test:full` unpacks it from its Debian package
 * (deploy/setup.mjs).
 */

const PROFILE = join(REPOSITORY, 'node_modules/.cache/containers/usr/share/containers/seccomp.json')
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : 'arm64'
const SECCOMP_ARCHITECTURE = process.arch === 'x64' ? 'SCMP_ARCH_X86_64' : 'SCMP_ARCH_AARCH64'

const condition = z.object({ arches: z.array(z.string()).optional(), caps: z.array(z.string()).optional() })
const argument = z.object({ index: z.number(), value: z.number(), valueTwo: z.number(), op: z.string() })
const profile = z.object({
  defaultAction: z.string(),
  defaultErrnoRet: z.number(),
  archMap: z.array(z.object({ architecture: z.string(), subArchitectures: z.array(z.string()) })),
  syscalls: z.array(
    z.object({
      names: z.array(z.string()),
      action: z.string(),
      errnoRet: z.number().optional(),
      args: z.array(argument).nullable(),
      includes: condition,
      excludes: condition,
    }),
  ),
})

/**
 * The profile in the notation of the OCI runtime specification, for a container with these
 * capabilities.
 */
export function runtimeDefault(capabilities: readonly string[]): unknown {
  const { defaultAction, defaultErrnoRet, archMap, syscalls } = profile.parse(JSON.parse(readFileSync(PROFILE, 'utf8')))
  const has = (name: string): boolean => capabilities.includes(name)
  const here = archMap.find(({ architecture }) => architecture === SECCOMP_ARCHITECTURE)
  return {
    defaultAction,
    defaultErrnoRet,
    architectures: [SECCOMP_ARCHITECTURE, ...(here?.subArchitectures ?? [])],
    syscalls: syscalls
      .filter(({ includes }) => includes.arches?.includes(ARCHITECTURE) ?? true)
      .filter(({ includes, excludes }) => (includes.caps ?? []).every(has) && !(excludes.caps ?? []).some(has))
      .map(({ names, action, errnoRet, args }) => ({
        ...{ names, action, args: args ?? [] },
        ...(errnoRet === undefined ? {} : { errnoRet }),
      })),
  }
}
