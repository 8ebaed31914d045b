import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_PRIVATE_NAMESPACES, skipNamespaces as skip } from '../support/namespace.ts'

/** A small version of `npm run crash -- --machines`: faults of the machines of the brokers. */
const CASES = fileURLToPath(new URL('./broker-machines.js', import.meta.url))

const [command = '', ...parameters] = IN_PRIVATE_NAMESPACES
void t.spawn(command, [...parameters, process.execPath, '--enable-source-maps', CASES], { skip }, 'broker machines')
