import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_PRIVATE_NAMESPACES, skipNamespaces as skip } from '../support/namespace.ts'

/** A small version of `npm run crash -- --cluster`. */
const CASES = fileURLToPath(new URL('./cluster.js', import.meta.url))

const [command = '', ...parameters] = IN_PRIVATE_NAMESPACES
void t.spawn(command, [...parameters, process.execPath, '--enable-source-maps', CASES], { skip }, 'cluster')
