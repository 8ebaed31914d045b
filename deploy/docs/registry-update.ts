import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { builtInData } from '../../registry/built-in.ts'
import { platformOf } from '../../registry/platform.ts'
import { dataText } from '../release/registry-package.ts'
import { publicKeyText, signReleaseKey, updateFile } from '../release/registry-signing.ts'

/** Writes a later release of the registry with one more platform, and its root key. */
const root = generateKeyPairSync('ed25519').privateKey
const key = generateKeyPairSync('ed25519').privateKey
const { platforms, version: builtIn } = builtInData()
const [day, number = '1'] = [builtIn.slice(0, 10), builtIn.split('.')[3]]
const version = `${day}.${Number(number) + 1}`
const added = platformOf({
  ...{ id: 'example-ai', name: 'Example AI', vendor: 'Example', platform_type: 'llm_chat' },
  url: 'https://chat.example.com/',
  risk: { score: 60, why: 'General chatbot' },
  source: ['https://chat.example.com/ 2026-11-23'],
  domains: [
    { domain: 'chat.example.com', match: 'exact', role: 'web', specificity: 1, purpose: 'use', evidence: 'listed' },
  ],
})
const release = { version, commit: '', epochSeconds: 0 }
const text = dataText({ platforms: [...platforms, added] }, release)
writeFileSync('/etc/posture-service/registry-root.pem', publicKeyText(root))
const signedKey = signReleaseKey(root, key, 1, '2099-12-31')
writeFileSync('posture-registry.update', updateFile(text, version, key, signedKey, 180))
