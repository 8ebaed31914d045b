import { fileURLToPath } from 'node:url'
import t from 'tap'
import { IN_PRIVATE_NAMESPACES, skipNamespaces as skip } from '../support/namespace.ts'

/** Every node of a cluster is lost and replaced under load, after a load balancer. */
const CASES = fileURLToPath(new URL('./cluster-balancer.js', import.meta.url))

/**
 * The cluster runs before everything else of the machine: the share of failures is not that of a
 * cluster if all its processes wait for tests beside it.
 */
const FIRST = ['nice', '--adjustment=-15']
const [command = '', ...parameters] = [...FIRST, ...IN_PRIVATE_NAMESPACES]
void t.spawn(command, [...parameters, process.execPath, '--enable-source-maps', CASES], { skip }, 'cluster balancer')
