const result = document.querySelector('#result')
document.querySelector('#open').addEventListener('click', async () => {
  try {
    const inspection = await window.tensorFiles.inspect()
    if (inspection) result.textContent = JSON.stringify(inspection, undefined, 2)
  } catch (error) {
    result.textContent = error.message
  }
})
