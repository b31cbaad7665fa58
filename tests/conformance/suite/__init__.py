"""The black-box suite for any server of Envoy's rate limit protocol, version 3."""
