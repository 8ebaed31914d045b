import { Environment, type EnvironmentOptions } from '../../engine/kernel/lmdb/environment.ts'

const [uid, path = '', options = ''] = process.argv.slice(2)
process.setgroups?.([])
process.setgid?.(Number(uid))
process.setuid?.(Number(uid))
try {
  await new Environment(path, JSON.parse(options) as EnvironmentOptions).close()
  process.stdout.write('opened')
} catch (error) {
  process.stdout.write((error as Error).message)
}
