import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

/*
 * A receiver of webhooks: node receiver.js KEY CERTIFICATE. It accepts all messages, except those
 * to /tickets, which it refuses as a ticket system does whose form lacks a field.
 */
const PORT = 443
const [, , key = '', certificate = ''] = process.argv
createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (request, response) => {
  request.resume().on('end', () => {
    if (request.url === '/tickets') response.writeHead(422).end('field "priority" is required\n')
    else response.writeHead(204).end()
  })
}).listen(PORT, () => process.stdout.write('ready\n'))
